"""``fit``, ``evaluate``, ``generate`` and ``card`` of a whole database, and what takes one kind of it."""

import os.path
from collections.abc import Sequence
from itertools import count, pairwise
from pathlib import Path

from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome
from lightning_dpg.release.card.texts import Card
from lightning_dpg.run_folder import DATABASE, NOT_PRIVATE, RELEASE

BUILT_IN = "small_database"
_WAYS = {
    "attack": "give the run of one kind: attack RUN/kinds/KIND",
    "compare": "give the run of one kind: compare --like RUN/kinds/KIND --methods chung_lu",
    "audit": "it inserts edges into a graph: audit the method of a kind on one, whose noise is the same",
    **dict.fromkeys(("validate", "test"), "compare it with the real one: evaluate RUN"),
    "predict": "draw its tables: generate RUN",
    "fit": "give its schema: fit SCHEMA --epsilon 1",
    "plan": "fit checks the plans of all kinds before it spends anything",
    "studio": "its pages are for one graph: fit a database by the command line",
}
"""Other commands, and what to do with a database in their place."""


def is_schema(word: str) -> bool:
    """Return whether a word of a command line names the schema of a database.

    Args:
        word: The word.
    """
    if word == BUILT_IN:
        return True
    if not word.endswith((".yaml", ".yml")) or not os.path.isfile(word):
        return False
    text = "\n" + Path(word).read_text(encoding="utf-8", errors="replace")
    return "\nrelations:" in text or "\nnodes:" in text


def is_database(word: str) -> bool:
    """Return whether a word of a command line is the folder of a database's release, or of its run.

    Args:
        word: The word.
    """
    places = (os.path.join(word, part, DATABASE) for part in (RELEASE, NOT_PRIVATE, ""))
    return any(map(os.path.isfile, places))  # which no long text of a card disturbs


def refuse_database(command: str, args: Sequence[str]) -> None:
    """Refuse a database where one graph is expected.

    Args:
        command: Name of the command.
        args: Its command line.

    Raises:
        CommandError: If a word is a schema, or the folder of a database; with the way out.
    """
    for option, word in pairwise(["", *args]) if command in _WAYS else ():
        if option != "--out" and (is_database(word) or is_schema(word)):
            raise CommandError(
                f"{word}: a database of several kinds of relations\n{_WAYS[command]}"
            )


def fit(
    schema: str,
    *,
    epsilon: float | None = None,
    row_epsilon: float | None = None,
    delta: float = 0.0,
    out: Path | None = None,
    seed: int = 0,
    book: str | None = None,
    dataset: str | None = None,
) -> Outcome:
    """Fit a whole private database within a budget, and write a release of all its tables.

    Each kind of relation has a run of its own at the whole epsilon, since a relation is in one kind. The
    epsilons of the private columns of a node add up over the kinds that read them.

    Args:
        schema: Schema of the database in YAML, see ``describe-schema``, or ``small_database``.
        epsilon: Budget of one relation of any kind.
        row_epsilon: Budget of the private columns of one node, over all kinds.
        delta: Budget of one relation.
        out: New or empty folder of the run; by default ``runs/database/version_K``.
        seed: Public seed, which the noise does not follow.
        book: URL of the budget book; by default that of LIGHTNING_DPG_BOOK.
        dataset: Name of the database in the book.

    Example:
        python -m lightning_dpg fit schema.yaml --epsilon 1 --row-epsilon 1
    """
    if epsilon is None:
        raise CommandError(
            f"--epsilon is missing: every run states its budget\nsuch as: fit {schema} --epsilon 1"
        )
    folder = out or next(
        path for number in count() if not (path := Path(f"runs/database/version_{number}")).exists()
    )
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.run.database import fit_database

    release = fit_database(
        schema,
        epsilon=epsilon,
        row_epsilon=row_epsilon,
        delta=delta,
        out=folder,
        seed=seed,
        book=book,
        dataset=dataset,
    )
    lines = [
        f"run folder: {folder}",
        f"release: {release.folder}",
        f"guarantee: {release.guarantee}",
        f"see it beside the real one: python -m lightning_dpg evaluate {folder}",
    ]
    values = {"run": folder, "release": release.folder, "guarantee": release.guarantee}
    return Outcome(lines, values | {"epsilon": release.epsilon, "delta": release.delta})


def evaluate(
    run: Path, *, seed: int = 0, html: Path | None = None, csv: Path | None = None
) -> Outcome:
    """Compare a release of a database with the real one. Reads private tables: nothing is private.

    Args:
        run: Folder of the run.
        seed: Public seed of the synthetic database.
        html: File for a page.
        csv: File for a row per number.

    Example:
        python -m lightning_dpg evaluate runs/database/version_0 --html quality.html
    """
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.evaluation.database import evaluate_database
    from lightning_dpg.release.database import open_database
    from lightning_dpg.run.data import database_of_run

    found = evaluate_database(database_of_run(run), open_database(run), seed)
    if html is not None:
        found.to_html(html)
    if csv is not None:
        found.to_csv(csv)
    files = [path for path in (html, csv) if path is not None]
    return Outcome([found.text(), *map(str, files)], found.values | {"files": files})


def generate(run: Path, *, seed: int = 1, out: Path | None = None) -> Outcome:
    """Draw the tables of a database again. Needs no private data, costs nothing.

    Args:
        run: Folder of a run or of a release.
        seed: Public seed.
        out: New folder; by default ``generated/SEED`` in the folder of the run.

    Example:
        python -m lightning_dpg generate runs/database/version_0 --seed 1
    """
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.release.database import open_database, write_tables

    folder = out or run / "generated" / str(seed)
    if folder.exists():
        raise CommandError(f"{folder}: it is there already\ngive another seed, or --out FOLDER")
    release = open_database(run)
    folder.mkdir(parents=True)
    write_tables(release, folder, seed)
    files = sorted(folder.iterdir())
    return Outcome([*map(str, files)], {"files": files, "seed": seed})


def card(release: Path, *, texts: Card = Card(), sign: Path | None = None) -> Outcome:
    """Write the cards of all kinds of a database again, with other texts of its owner.

    It costs nothing, and statements, tensors and tables stay. Texts that are not given stay as they are.

    Args:
        release: Folder of a release or of a run.
        texts: See :class:`lightning_dpg.release.card.texts.Card`.
        sign: Private key of SSH or minisign, which signs the checksums of the whole by its own tool.
            Without texts, the cards stay as they are.

    Example:
        python -m lightning_dpg card runs/database/version_0 --operator "Bank of Utopia"
    """
    if texts.audit or texts.attack:
        raise CommandError("results are of one kind\ngive them to its run: card RUN/kinds/KIND")
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.release.database import open_database, rewrite_cards
    from lightning_dpg.release.signature import sign as sign_sums

    folder = open_database(release).folder
    files = rewrite_cards(folder, texts, is_rewritten=texts != Card() or sign is None)
    files += [] if sign is None else [sign_sums(folder, sign)]
    return Outcome([*map(str, files)], {"release": folder, "files": files})
