"""``card`` writes a card again, and what is verified before is verified after."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
import yaml
from pytorch_lightning import Callback

from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.main import main
from lightning_dpg.methods import ChungLu
from lightning_dpg.release.card.document import registry_record
from lightning_dpg.release.card.texts import OWNER_TEXTS
from tests.training import quiet_trainer

AUDIT = {
    "method": "ChungLu",
    "view": "black_box",
    "guesses": 16,
    "correct": 9,
    "claimed_epsilon": 1.0,
    "epsilon_lower_bound": 0.0123,
    "confidence": 0.95,
    "refuted": False,
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    writer = ReleaseWriter(formats=["npz"], card={"operator": "Bank X", "purpose": "research"})
    trainer = quiet_trainer(PrivacyAccountant(1.0, 0.0), writer, default_root_dir=folder)
    trainer.fit(ChungLu(34), EdgeListDataModule("karate"))
    return folder / "release"


@pytest.fixture
def release(original, tmp_path):
    return shutil.copytree(original, tmp_path / "release")


def rewritten(release, *args):
    assert main(["card", str(release), *args]) == 0
    assert main(["verify", str(release)]) == 0
    return json.loads((release / "privacy.json").read_text())


def test_given_texts_are_replaced_and_all_else_stays(release, monkeypatch):
    before = {path.name: path.read_bytes() for path in release.iterdir()}
    known = json.loads(before["privacy.json"])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(86_400 * 365))
    content = rewritten(release, "--operator", "Bank | <Y>", "--data", "Payments of 2025")
    administrative = known["administrative"] | {"operator": "Bank | <Y>", "card_date": "1971-01-01"}
    data = known["data"] | {"description": "Payments of 2025"}
    assert content == known | {"administrative": administrative, "data": data}
    card, page = ((release / f"MODEL_CARD.{kind}").read_text() for kind in ("md", "html"))
    assert "| operator | Bank \\| &lt;Y> |" in card
    assert "<td>Bank | &lt;Y&gt;</td>" in page
    assert "| purpose | research |" in card
    after = {path.name: path.read_bytes() for path in release.iterdir()}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"MODEL_CARD.md", "MODEL_CARD.html", "SHA256SUMS", "privacy.json"}
    assert after.keys() == before.keys()


def test_the_record_is_valid_in_the_registry_and_names_what_is_missing(release, tmp_path, capsys):
    schema = yaml.safe_load(
        (Path(__file__).parents[2] / "release/registry_schema.yaml").read_text()
    )
    valid = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    before = {path.name: path.read_bytes() for path in release.iterdir()}
    file = tmp_path / "record.yaml"
    assert main(["card", str(release), "--registry", str(file)]) == 0
    assert {path.name: path.read_bytes() for path in release.iterdir()} == before
    record = yaml.safe_load(file.read_text())
    assert [error.message for error in valid.iter_errors(record)] == []
    assert record["deployment"]["basic"]["data_product_region"] == "not stated by the operator"
    said = capsys.readouterr().out
    assert str(file) in said and "region and law, sector" in said and "purpose" not in said
    odd = 'x: "a" \\ {{ y }} \U0001f600 # \x85'
    texts = {field: f"{field} {odd}" for field in OWNER_TEXTS} | {"sector": "Finance"}
    options = [f"--{field.replace('_', '-')}={text}" for field, text in texts.items()]
    rewritten(release, *options, "--registry", str(file))
    record = yaml.safe_load(file.read_text())
    assert [error.message for error in valid.iter_errors(record)] == []
    assert record["tier"] == 3
    assert record["deployment"]["basic"]["data_product_sector"] == "Finance"
    assert record["deployment"]["implementation"]["justification"] == " ".join(
        texts["epsilon_reason"].split()
    )
    assert "Not stated" not in file.read_text()
    content = json.loads((release / "privacy.json").read_text()) | {"delta": 1e-5}
    found = yaml.safe_load(registry_record(content)[0])["deployment"]["privacy_loss"]
    assert found["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-5}
    (release / "synthetic-0.npz").unlink()
    assert main(["card", str(release), "--registry", str(file)]) == 2
    assert "no card is written, since it has faults" in capsys.readouterr().err


def test_a_result_that_is_gone_at_the_end_does_not_cost_the_release(tmp_path):
    file = tmp_path / "audit.json"
    file.write_text(json.dumps(AUDIT | {"graph": {"name": "karate", "is_public": True}}))

    class Gone(Callback):
        """Somebody who cleans up during the run."""

        def on_train_start(self, trainer, pl_module):
            file.unlink()

    writer = ReleaseWriter(formats=["npz"], card={"audit": str(file)})
    trainer = quiet_trainer(PrivacyAccountant(1.0, 0.0), writer, Gone(), default_root_dir=tmp_path)
    trainer.fit(ChungLu(34), EdgeListDataModule("karate"))
    assert "9 of 16 guesses" in (tmp_path / "release" / "MODEL_CARD.md").read_text()


def test_a_card_that_was_edited_or_lost_is_written_again(release):
    (release / "MODEL_CARD.md").write_text("Guarantee: perfect\n")
    (release / "MODEL_CARD.html").unlink()
    rewritten(release)


def test_an_edited_statement_gets_no_card(release, capsys):
    path = release / "privacy.json"
    path.write_text(path.read_text().replace('"epsilon": 1.0,', '"epsilon": 0.5,', 1))
    before = {path.name: path.read_bytes() for path in release.iterdir()}
    assert main(["card", str(release), "--operator", "X"]) == 2
    assert "prove no less than 1" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in release.iterdir()} == before


@pytest.mark.parametrize("is_public", [True, False, None])
def test_numbers_that_read_a_private_graph_stay_beside_the_release(release, is_public, tmp_path):
    report = (
        AUDIT if is_public is None else AUDIT | {"graph": {"name": "g", "is_public": is_public}}
    )
    (tmp_path / "audit.json").write_text(json.dumps(report))
    content = rewritten(release, "--audit", str(tmp_path / "audit.json"))
    published = "".join(path.read_text("latin1") for path in release.iterdir())
    private = tmp_path / "nonprivate-card.html"
    assert ("0.0123" in published) is ("9 of 16" in published) is (is_public is True)
    assert private.is_file() is (is_public is not True)
    if is_public is True:
        assert "built-in graph g, which is public" in content["evaluation"]["audit"]
    else:
        assert "audited on the private graph; the operator has the result" in published
        assert "<title>NOT PRIVATE: " in private.read_text()
        assert "0.0123" in private.read_text()
    assert content["evaluation"]["attack"] == "No attack was recorded."


def test_the_best_attack_on_a_public_graph_is_published(release, tmp_path):
    rows = [
        {
            "attack": name,
            "release": {"found": {"value": value}},
            "baseline": {"found": {"value": 0.02}},
        }
        for name, value in (("edges", 0.05), ("scores", 0.25), ("neighbors", 0.1))
    ]
    report = {
        "graph": {"name": "karate", "is_public": True},
        "confidence": 0.95,
        "link_stealing": rows,
        "link_prediction": {"generated": {"value": 0.669}},
    }
    (tmp_path / "attack.json").write_text(json.dumps(report))
    said = rewritten(release, "--attack", str(tmp_path / "attack.json"))["evaluation"]["attack"]
    assert "best of 3 attacks on single links (scores) finds 25.0 %" in said
    assert "; 2.0 % without them in the data. Accuracy" in said
    assert "66.9 %" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ("{}", "it has no 'method'"),
        (
            json.dumps(AUDIT | {"method": "BTER"}),
            "a result of BTER, while this release is by ChungLu",
        ),
    ],
)
def test_files_that_are_no_result_are_refused(release, tmp_path, capsys, text, said):
    (tmp_path / "audit.json").write_text(text)
    assert main(["card", str(release), "--audit", str(tmp_path / "audit.json")]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_without_a_release_is_refused(fails):
    assert "no release" in fails("card", ".")


class Page(HTMLParser):
    """What a page shows, and what it would load."""

    def __init__(self):
        super().__init__()
        self.tags, self.loads, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [(tag, name) for name, _ in attrs if name in ("src", "href", "srcset")]

    def handle_data(self, data):
        self.text += data


def test_the_page_loads_nothing_and_says_what_the_card_says(original):
    html = (original / "MODEL_CARD.html").read_text()
    page = Page()
    page.feed(html)
    assert not page.loads
    assert not {"script", "link", "img", "iframe"} & {*page.tags}
    assert "url(" not in html and "@import" not in html and "http" not in html
    content = json.loads((original / "privacy.json").read_text())
    shown = re.sub(r"\s+", " ", page.text)
    card = (original / "MODEL_CARD.md").read_text()
    parts = [
        content["guarantee"],
        *content["privacy_unit"]["not_protected"],
        *content["privacy_parameters"]["meaning"],
        *[read["description"] for read in content["mechanisms"]["reads"]],
        *content["limitations"]["known"],
    ]
    assert [part for part in parts if part not in shown or part not in card] == []
