"""``fit``, ``evaluate``, ``generate`` and ``verify`` of a whole database."""

from itertools import count
from pathlib import Path

from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome
from lightning_dpg.run_folder import DATABASE, release_in

BUILT_IN = "small_database"


def is_schema(word: str) -> bool:
    """Return whether a word of a command line names the schema of a database.

    Args:
        word: The word.
    """
    path = Path(word)
    if word == BUILT_IN:
        return True
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        return False
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.startswith("relations:") for line in lines)


def is_database(word: str) -> bool:
    """Return whether a word of a command line is the folder of a database's release, or of its run.

    Args:
        word: The word.
    """
    return (release_in(Path(word)) / DATABASE).is_file()


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
