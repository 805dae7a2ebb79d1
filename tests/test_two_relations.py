"""One run with edges and private columns: totals apart, booked together, and checked by anybody."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.utilities.exceptions import MisconfigurationException

import lightning_dpg as dpg
from lightning_dpg.callbacks import PrivacyAccountant, PrivacyProgressBar
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.main import main
from lightning_dpg.methods import ChungLu
from lightning_dpg.methods.base import ledger_of
from lightning_dpg.methods.planning import check_plan
from lightning_dpg.preflight.budget import row_budget_warnings
from lightning_dpg.privacy.budget import BudgetTooSmall
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import JOURNAL, Budget, PrivacyBudgetExceeded, PrivacyLedger
from lightning_dpg.release import verify as verification
from lightning_dpg.release.card.topics import parameters_of
from lightning_dpg.release.statement import folder_name, privacy_statement, proved_by
from lightning_dpg.release.writer import with_version
from lightning_dpg.run.fit import fit_method
from lightning_dpg.run_folder import NOT_PRIVATE
from tests.callbacks.test_privacy_accountant import Killed, Killer, make_trainer
from tests.cards import card_of
from tests.entries import entry
from tests.run.commands.test_verify import forged as forge
from tests.training import BooksSteps
from tests.two_relations import EdgesAndRows

ROWS = Relation.ATTRIBUTES
# At epsilon 1 of an edge and .5 of a row: a change of the shared read by 1 costs .25.
BY_HAND = [
    ("num_edges", "edge", 0.5),
    ("table", "attributes", 0.25),
    ("linked", "edge", 0.5),
    ("linked_rows", "attributes", 0.25),
]


class BookedToEdgesOnly(EdgesAndRows):
    """The planted bug: the read of both relations is not paid by rows."""

    def pay(self, read, value, law=None, *, also=()):
        return super().pay(read, value, law)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Folder of a run, and its release."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    release = dpg.fit("karate", EdgesAndRows, epsilon=1.0, row_epsilon=0.5, out=folder)
    return folder, release


def totals(entries):
    """Sum of the epsilons of each relation, without the ledger."""
    sums = Counter()
    for each in entries:
        sums[each["relation"]] += each["epsilon"] * each["steps"]
    return dict(sums)


def test_the_ledger_of_a_run_is_that_by_hand(run):
    folder, release = run
    entries = release.statement["entries"]
    assert [(each["key"], each["relation"], each["epsilon"]) for each in entries] == BY_HAND
    lines = [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]
    assert totals(lines) == totals(entries) == {"edge": 1.0, "attributes": 0.5}
    assert [line.get("beside") for line in lines] == [None, "edge", None, "edge"]


def test_a_read_that_rows_do_not_pay_for_changes_their_total():
    planted = BookedToEdgesOnly()
    fit_method(planted, EdgeListDataModule("karate"), 1.0, 0.0, row_epsilon=0.5)
    booked = planted.ledger.state_dict()["entries"]
    assert [(each["key"], each["relation"], each["epsilon"]) for each in booked] == BY_HAND[:3]
    assert totals(booked) == {"edge": 1.0, "attributes": 0.25}  # .5 is the truth


def test_the_statement_says_each_total_and_both_together(run):
    statement = run[1].statement
    assert (statement["relation"], statement["epsilon"], statement["delta"]) == ("edge", 1.0, 0.0)
    assert statement["beside"] == [
        {
            "relation": "attributes",
            "epsilon": 0.5,
            "delta": 0.0,
            "accountant": "sum of pure epsilons",
            "record": "private columns of one node",
            "reads": 2,
        }
    ]
    assert statement["guarantee"] == (
        "edge-level (1, 0)-DP (add/remove one undirected edge), sum of pure epsilons accountant, "
        "2 reads; attribute-level (0.5, 0)-DP (exchange the private columns of one node), sum of "
        "pure epsilons accountant, 2 reads. Any one undirected edge is protected at epsilon 1, the "
        "private columns of one node at epsilon 0.5, and together with k edges of that node at "
        "epsilon 0.5 + k."
    )


def test_the_card_has_both_units_and_their_sum_for_groups_only(run):
    card = (run[0] / "release" / "MODEL_CARD.md").read_text()
    for line in (
        "| 5 | 5 | 0 |",  # relations
        "| 0 | 0.5 | 0 |",  # columns alone
        "| 5 | 5.5 | 0 |",  # columns with relations
        "| linked nodes of value 1 | attributes | epsilon 0.25 | 1 |",
        "- Protected: The private columns of one node, even if",
        "columns together with 50 relations are protected at epsilon 50.5 only.",
        "Costs to one relation and to the private columns of one node are added up apart",
    ):
        assert line in card
    assert "epsilon 1.5" not in card  # one unit never pays for the other
    assert "<th>relation</th>" in run[1]._repr_html_()


def test_a_delta_of_the_edges_is_that_of_the_edges_of_a_group():
    module = EdgesAndRows()
    module.ledger.budget = Budget(2.0, 1e-6)
    module.ledger.beside[ROWS] = Budget(0.5, 0.0)
    module.ledger.spend(entry(noise_multiplier=3.0))
    module.ledger.spend(entry("pure", epsilon=0.5, relation=ROWS))
    statement = privacy_statement(module)
    epsilon = statement["epsilon"]
    assert f"at epsilon 0.5 + {epsilon:.15g} k and the delta of k edges." in statement["guarantee"]
    _, together = parameters_of(statement)["beside"][0]["together"][:2]
    assert together["epsilon"] == pytest.approx(epsilon + 0.5)
    assert together["delta"] == 1e-6


def forged(run, place, edit):
    """Faults of a release that was edited in all of its places, with a new card and checksums."""
    return dpg.verify(forge(run[0] / "release", place, edit)).faults


def of_edges(content):
    content["epsilon"] = 0.5
    content["guarantee"] = content["guarantee"].replace("(1, 0)", "(0.5, 0)")


def of_rows(content):
    content["beside"][0]["epsilon"] = 0.25
    content["guarantee"] = content["guarantee"].replace("0.5", "0.25")


def of_an_entry(content):
    content["entries"][3]["epsilon"] = 0.125


def of_a_relation(content):
    del content["beside"]


def of_a_read_of_rows(content):
    del content["entries"][3], content["mechanisms"]["reads"][3]


def of_the_sentence(content):
    content["guarantee"] = content["guarantee"].replace("(0.5, 0)", "(0.1, 0)")


def of_both_together(content):
    content["guarantee"] = content["guarantee"].replace("0.5 + k", "0.5")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (of_edges, "states epsilon 0.5, but its entries prove no less than 1"),
        (of_rows, "states epsilon 0.25 of the relation attributes, but its entries prove no less"),
        (of_an_entry, "states epsilon 0.5 of the relation attributes, but its entries prove 0.375"),
        (of_a_relation, "it has reads of the relation attributes, and states no epsilon of it"),
        (of_a_read_of_rows, "of the relation attributes, but its entries prove 0.25"),
        (of_the_sentence, "does not say 'attribute-level (0.5, 0)-DP'"),
        (of_both_together, "does not say 'epsilon 0.5 + k'"),
    ],
)
def test_verify_finds_an_edit_of_either_total(run, tmp_path, edit, said):
    faults = forged(run, tmp_path / "forged", edit)
    assert any(said in fault for fault in faults), faults


def test_verify_composes_each_relation_again(run, tmp_path):
    assert not forged(run, tmp_path / "as_it_was", lambda content: None)
    found = dpg.verify(run[0])
    assert found.ok
    assert "epsilon 0.5 of the relation attributes is what its reads prove" in str(found)


def refused(*arguments, **budgets):
    with pytest.raises(dpg.CommandError) as error:
        dpg.fit("karate", *arguments, **budgets)
    assert len(str(error.value).splitlines()) <= 5
    return str(error.value)


def test_a_row_budget_is_for_methods_that_read_private_columns(tmp_path):
    text = refused(EdgesAndRows, epsilon=1.0, out=tmp_path / "run")
    assert "has no budget for them\nset row_epsilon, such as 1" in text
    assert not (tmp_path / "run").exists()
    with pytest.raises(MisconfigurationException, match="ChungLu reads no private column"):
        fit_method(ChungLu(34), EdgeListDataModule("karate"), 1.0, 0.0, row_epsilon=1.0)
    with pytest.raises(ValueError, match="row_epsilon must be positive"):
        PrivacyAccountant(1.0, 0.0, row_epsilon=0.0)
    assert "row_epsilon must be a number" in refused(EdgesAndRows, epsilon=1.0, row_epsilon="1")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"least_edges": 0.9}, "^privacy.epsilon 1 at delta 0 does not pay .*\nset it to 1.4 or"),
        ({"least_rows": 0.4}, "^privacy.row_epsilon 0.5 does not pay .*\nset it to 0.65 or more$"),
        (
            {"least_edges": 0.9, "least_rows": 0.4},
            "^privacy.epsilon 1 at .*\nset it to 1.4 .*\nprivacy.row_epsilon .*\nset it to 0.65 ",
        ),
    ],
)
def test_a_plan_names_the_budget_that_is_too_small(settings, said):
    method = EdgesAndRows(**settings)
    with pytest.raises(MisconfigurationException, match=said):
        method.accept_budget(Budget(1.0, 0.0), row_budget=Budget(0.5, 0.0))
    assert (method.ledger.budget, method.ledger.budget_of(Relation.ATTRIBUTES)) == (None, None)
    method.accept_budget(Budget(3.0, 0.0), row_budget=Budget(1.5, 0.0))
    assert method.ledger.budget_of(Relation.ATTRIBUTES) == Budget(1.5, 0.0)


def test_a_plan_without_noise_for_its_budgets_names_the_one_that_helps():
    def needs(relation):
        def plan(budgets):
            if budgets[relation].epsilon < 2:
                raise BudgetTooSmall
            return []

        return plan

    budgets = {Relation.EDGE: Budget(1.0, 1e-6), ROWS: Budget(0.5, 0.0)}
    for relation, name in ((Relation.EDGE, "epsilon"), (ROWS, "row_epsilon")):
        with pytest.raises(MisconfigurationException, match=f"^privacy.{name} .*\nset it to 2 or"):
            check_plan(needs(relation), budgets, "Any", None)

    def both(budgets):
        return [*needs(Relation.EDGE)(budgets), *needs(ROWS)(budgets)]

    with pytest.raises(MisconfigurationException, match=r"epsilon 1 and .* 0.5 do .*: raise both"):
        check_plan(both, budgets, "Any", None)
    noisy = entry(relation=ROWS, noise_multiplier=9.0)
    with pytest.raises(MisconfigurationException, match=r"no privacy.row_epsilon .* has no delta"):
        check_plan(lambda _: [noisy], budgets, "Any", None)


@pytest.mark.parametrize(("epsilon", "rows"), [(math.inf, 1.0), (1.0, math.inf)])
def test_without_one_of_both_guarantees_there_is_none(epsilon, rows):
    method = EdgesAndRows()
    fit_method(method, EdgeListDataModule("karate"), epsilon, 0.0, row_epsilon=rows)
    statement = privacy_statement(method)
    assert statement["epsilon"] == statement["beside"][0]["epsilon"] == "inf"
    assert statement["guarantee"].startswith("none: n")
    assert folder_name(statement) == NOT_PRIVATE
    card = card_of(with_version(statement))
    assert "There is no unit of protection" in card
    assert "| its epsilon, delta | none |" in card


def test_the_command_line_has_both_budgets(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--method", "tests.two_relations.EdgesAndRows", "--epsilon", "1"]
    words += ["--trainer.max_epochs", "1", "--privacy.delta", "0", "--json"]
    assert main(["fit", "karate", *words, "--row-epsilon", "0.5", "--out", "run"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["epsilon"], made["beside"][0]["epsilon"]) == (1.0, 0.5)
    assert main(["verify", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["beside"] == made["beside"]


class Steps(BooksSteps):
    """Pays a read of both relations in each step, its price to a row first."""

    capabilities = replace(BooksSteps.capabilities, is_pure=True)
    reads_private_columns = True

    def __init__(self, edges=0.125, rows=0.25):
        super().__init__()
        self.save_hyperparameters()

    def step_entries(self):
        edges, rows = self.hparams["edges"], self.hparams["rows"]
        return [
            entry("pure", key="step", name="step", relation=ROWS, epsilon=rows),
            entry("pure", key="step", name="step", epsilon=edges),
        ]


def batches():
    return torch.utils.data.DataLoader(torch.zeros(20, 1))


@pytest.mark.parametrize(("edges", "rows", "steps"), [(9.0, 1.0, 4), (0.4, 9.0, 3)])
def test_a_run_ends_when_either_budget_is_spent(edges, rows, steps, tmp_path):
    module = Steps()
    accountant = PrivacyAccountant(edges, 0.0, row_epsilon=rows)
    bar = PrivacyProgressBar()
    trainer = make_trainer(accountant, bar, folder=tmp_path, enable_progress_bar=True)
    trainer.fit(module, batches())
    assert [(each.relation, each.steps) for each in module.ledger.entries] == [
        (ROWS, steps),
        (Relation.EDGE, steps),
    ]
    logged = trainer.logged_metrics
    assert float(logged["privacy/epsilon"]) == pytest.approx(0.125 * steps)
    assert float(logged["privacy/row_epsilon"]) == pytest.approx(0.25 * steps)
    shown = bar.get_metrics(trainer, module)
    assert shown["row_eps"] == f"{0.25 * steps:g}/{rows:g}"


def test_a_killed_run_forgets_no_read_of_either_relation(tmp_path):
    budgets = {"epsilon": 9.0, "delta": 0.0, "row_epsilon": 2.0}
    keep = ModelCheckpoint(every_n_train_steps=1)
    trainer = make_trainer(PrivacyAccountant(**budgets), keep, Killer(3), folder=tmp_path)
    with pytest.raises(Killed):
        trainer.fit(Steps(), batches())
    journal = Path(trainer.log_dir) / JOURNAL
    first = json.loads(journal.read_text().splitlines()[0])
    assert (first["relation"], first["beside"]) == ("attributes", "edge")
    state = ledger_of(torch.load(keep.best_model_path, weights_only=True))
    shown = PrivacyLedger.replay(journal)
    assert shown["relation"] == state["relation"] == "edge"
    assert [each["steps"] for each in shown["entries"]] == [3, 3]
    assert state["entries"][0]["steps"] < 3

    module = Steps()
    again = make_trainer(PrivacyAccountant(**budgets), folder=tmp_path)
    again.fit(module, batches(), ckpt_path=keep.best_model_path)
    assert {each.relation: each.steps for each in module.ledger.entries} == {
        ROWS: 8,
        Relation.EDGE: 8,
    }
    assert module.ledger.headline(0.0, ROWS)[0] == 2.0
    assert PrivacyLedger.replay(Path(again.log_dir) / JOURNAL) == module.ledger.state_dict()


def of_both(edges=1.0, rows=1.0):
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(edges, 0.0)
    ledger.beside[ROWS] = Budget(rows, 0.0)
    return ledger


def test_a_journal_of_a_read_that_was_torn_apart_counts_too_much_and_never_too_little(tmp_path):
    ledger = of_both()
    ledger.journal = tmp_path / JOURNAL
    reads = entry("pure", epsilon=0.5, relation=ROWS), entry("pure", epsilon=0.5)
    ledger.spend(*reads)
    ledger.journal.write_bytes(ledger.journal.read_bytes()[:-5])  # the read was never drawn
    again = of_both()
    again.catch_up(PrivacyLedger.replay(ledger.journal))
    assert again.entries == [reads[0]]
    again.journal = ledger.journal
    again.spend(*reads)
    assert PrivacyLedger.replay(ledger.journal) == again.state_dict()
    assert (again.headline(0.0)[0], again.headline(0.0, ROWS)[0]) == (0.5, 1.0)


def test_a_ledger_without_a_row_budget_keeps_what_rows_have_spent():
    ledger = of_both()
    ledger.spend(entry("pure", epsilon=0.5, relation=ROWS))
    shown = PrivacyLedger(Relation.EDGE)
    shown.load_state_dict(ledger.state_dict())
    assert shown.headline(0.0, ROWS) == (0.5, "sum of pure epsilons")
    with pytest.raises(ValueError, match="attributes"):
        shown.spend(entry("pure", epsilon=0.1, relation=ROWS))


def test_a_price_of_more_noise_than_is_drawn_is_refused():
    """One noise serves both relations: a row of sensitivity 2 cannot pay as if it had 1."""
    method = ChungLu(3)
    method.ledger.beside[ROWS] = Budget(9.0, 0.0)
    read = entry("pure", epsilon=0.5)
    cheap = entry("pure", epsilon=0.5, sensitivity=2.0, relation=ROWS)
    with pytest.raises(ValueError, match=r"'attributes' is that of noise of scale 4, .* gets 2"):
        method.pay(read, torch.tensor(3), also=[cheap])
    assert not method.ledger.entries
    right = entry("pure", epsilon=1.0, sensitivity=2.0, relation=ROWS)
    method.pay(read, torch.tensor(3), also=[right])
    assert method.ledger.entries == [read, right]


def test_rows_are_not_sampled():
    with pytest.raises(ValueError, match="attributes"):
        entry(relation=ROWS, noise_multiplier=1.0, sample_rate=0.1)
    with pytest.raises(PrivacyBudgetExceeded, match="of the relation 'attributes' from 0"):
        of_both().spend(entry(relation=ROWS, noise_multiplier=99.0))  # which needs a delta


def test_plan_shows_columns_with_relations(capsys):
    words = ["plan", "--goal", "links", "--epsilon", "2", "--num-nodes", "2000"]
    assert main([*words, "--delta", "1e-6", "--row-epsilon", "0.5", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["row_epsilon"] == 0.5
    found = {each["relations"]: (each["epsilon"], each["delta"]) for each in planned["together"]}
    assert found[0] == (0.5, 0.0)
    assert found[5] == (10.5, pytest.approx(1e-6 * (math.exp(10) - 1) / (math.exp(2) - 1)))
    assert main([*words, "--row-epsilon", "1"]) == 0
    assert f"{10:>10}{21:>10}{0:>10}" in capsys.readouterr().out


def test_a_row_budget_that_says_nothing_gets_a_warning():
    assert row_budget_warnings(Budget(1.0, 0.0), 20) == []
    (large,) = row_budget_warnings(Budget(20.0, 0.0), 2000)
    assert "private columns of one node, who was 50 % sure" in large
    (small,) = row_budget_warnings(Budget(0.1, 0.0), 100)
    assert "of each value is off by about 20\nset privacy.row_epsilon to 0.2 or more" in small


def of_another_relation(statement):
    statement["entries"][3] |= {"relation": "edge", "record": "undirected edge"}


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda statement: None, None),
        (of_a_relation, "it says nothing of private columns, which EdgesAndRows reads"),
        (of_another_relation, "its read 'linked_rows' is of another kind than EdgesAndRows"),
        (of_an_entry, "its read 'linked_rows' costs less than EdgesAndRows plans"),
    ],
)
def test_verify_plans_a_shipped_method_with_both_budgets(run, edit, said):
    statement = json.loads(json.dumps(run[1].statement))
    edit(statement)
    method = EdgesAndRows()
    main, *others = proved_by(statement)
    method.ledger.budget = main.budget
    method.ledger.beside = {each.relation: each.budget for each in others}
    faults = list(verification._faults_by_the_method(method, statement, is_same_version=True))
    assert [said in fault for fault in faults] == ([] if said is None else [True]), faults
