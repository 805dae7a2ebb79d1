"""``generate``, ``verify`` and ``card``: what can be done with a release."""

import os
import re
from pathlib import Path
from typing import Any

from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import FINE, REFUTED, Outcome
from lightning_dpg.release.card.texts import Card
from lightning_dpg.run_folder import (
    DATABASE,
    LEARNER,
    release_at,
    release_in,
    released_tensors,
    statement_in,
)


def generate(
    run: Path,
    *,
    num_graphs: int = 1,
    seed: int | None = None,
    out: Path | None = None,
    method: str | None = None,
) -> Outcome:
    """Draw synthetic graphs from a release. Needs no private data, costs nothing.

    Args:
        run: Folder of a run or of a release.
        num_graphs: Number of graphs.
        seed: Seed of the first graph; by default the first one of which the release holds no graph.
        out: Folder to write to; by default ``generated`` in the run folder.
        method: Class of the release's method as MODULE.CLASS, if it is not shipped; it is code, and runs.

    Example:
        python -m lightning_dpg generate runs/chung_lu/version_0 --num-graphs 10
    """
    if num_graphs < 1:
        raise CommandError(f"--num-graphs must be positive, got {num_graphs}")
    tensors = released_tensors(run).absolute()
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.release.graph_files import write_graphs
    from lightning_dpg.release.reader import imported, open_release
    from lightning_dpg.release.recipe import first_line
    from lightning_dpg.release.writer import FEATURES

    if tensors.name == LEARNER:
        raise CommandError(
            f"{run}: its method predicts labels, and draws no graph\n"
            f"read {tensors.with_name(FEATURES)}, or use: python -m lightning_dpg predict"
        )
    method_class = None if method is None else imported(method)
    release = open_release(tensors.parent, method_class)
    if out is None:
        out = tensors.parent.parent / "generated"
        out = out if run.is_absolute() else Path(os.path.relpath(out))
    first = _first_new_seed(tensors.parent) if seed is None else seed
    seeds = range(first, first + num_graphs)
    try:
        paths = write_graphs(release.method, seeds, out)
    except OSError:
        raise
    except Exception as error:
        reason = f"its tensors draw no graph ({first_line(error)})"
        raise CommandError(f"{tensors}: {reason}") from error
    return Outcome(
        [*map(str, paths)], {"release": tensors.parent, "seeds": list(seeds), "files": paths}
    )


def _first_new_seed(release: Path) -> int:
    """Return the first seed after the seeds of the graphs in the release."""
    names = (re.fullmatch(r"synthetic-(\d+)\.\w+", path.name) for path in release.iterdir())
    return max((int(name[1]) + 1 for name in names if name), default=0)


_STATED = ("method", "guarantee", "epsilon", "delta", "relation", "conditional")


def verify(
    release: Path,
    *,
    no_redraw: bool = False,
    signed_by: Path | None = None,
    method: str | None = None,
) -> Outcome:
    """Check a release, from its own files alone.

    The command checks the checksums of all files (SHA256SUMS, as sha256sum -c does), and refuses files
    that no release has. It recomputes epsilon from every read that privacy.json lists, by this program and
    by opacus. It compares privacy.json with both formats of the model card, with the metadata of the
    tensors and, for a shipped method, with its condition, its relation and the plan of its settings. It
    draws all graphs, people and transfers again from the tensors, and compares them with the files. No
    code of other methods is run: the first line then says so in red.

    Exit code 0 without a fault, 1 with one. Tensors and statement can be those of another release: compare
    the checksums with those that the sender has published.

    Args:
        release: Folder or file of a release.
        no_redraw: Do not draw graphs again, which takes as long as generate.
        signed_by: Public key of SSH or minisign, or file of allowed signers of SSH; the release must be
            signed by it.
        method: Class of the release's method as MODULE.CLASS, if it is not shipped; it is code, and runs.

    Example:
        python -m lightning_dpg verify runs/chung_lu/version_0
    """
    folder = release_at(release)
    if (folder / DATABASE).is_file():
        # Start-up time: the kinds of a database are opened with PyTorch.
        from lightning_dpg.release.database import verify_database

        found = verify_database(folder, redraw=not no_redraw, signed_by=signed_by)
        said = {"release": folder, "faults": list(found.faults), "epsilon": found.epsilon}
        return Outcome(str(found).split("\n"), said, REFUTED if found.faults else FINE)
    if no_redraw:
        # Start-up time: a wrong folder is refused before NumPy is imported.
        from lightning_dpg.release.agreement import agreement

        found = agreement(folder, signed_by)
    else:
        # Start-up time: only draws, the plan of the method and opacus need PyTorch.
        from lightning_dpg.release.reader import imported
        from lightning_dpg.release.verify import verify as check

        method_class = None if method is None else imported(method)
        found = check(folder, method_class=method_class, signed_by=signed_by)
    lines = str(found).split("\n")
    values: dict[str, Any] = {"release": folder, "faults": list(found.faults)}
    if found.faults:
        return Outcome(lines, values, REFUTED)
    statement = statement_in(folder)
    values |= {"warnings": list(found.warnings), "redrawn": not no_redraw, "signed_by": signed_by}
    values |= {name: statement.get(name) for name in _STATED}
    values |= {"beside": statement["beside"]} if "beside" in statement else {}
    return Outcome(lines, values)


def card(
    release: Path, *, texts: Card = Card(), sign: Path | None = None, registry: Path | None = None
) -> Outcome:
    """Write the model card of a release again, with other texts of its owner.

    The command writes MODEL_CARD.md, MODEL_CARD.html, the texts of privacy.json and SHA256SUMS. It costs
    nothing, and statement, tensors and graphs stay. Texts that are not given stay as they are; fit has the
    same texts as --card.operator and so on, and as the section card of a configuration. All given texts
    are published. Results that read the private graph are not: their numbers go to nonprivate-card.html
    beside the release, for the operator only.

    Args:
        release: Folder of a release or of a run.
        texts: See :class:`lightning_dpg.release.card.texts.Card`.
        sign: Private key of SSH or minisign, which signs SHA256SUMS by its own tool. Without texts, the
            card stays as it is.
        registry: File for a record by the schema of the registry of differential privacy deployments, in
            YAML. Without texts, the card stays as it is.

    Example:
        python -m lightning_dpg card runs/chung_lu/version_0 --operator "Bank of Utopia"
    """
    folder = release_in(release)
    if not (folder / "privacy.json").is_file():
        raise CommandError(f"{folder}: no release, it has no privacy.json")
    whole = folder.absolute().parent.parent
    if (whole / DATABASE).is_file():
        raise CommandError(
            f"{release}: a part of {whole}\nwrite the cards of all kinds: card {whole}"
        )

    # Start-up time: a wrong folder is refused before NumPy is imported.
    from lightning_dpg.release.cards import rewrite_card, sign_release, write_record

    files, lines = list[Path](), list[str]()
    if texts != Card() or (sign is None and registry is None):
        rewrite_card(folder, texts)
        files = [folder / "MODEL_CARD.md", folder / "MODEL_CARD.html"]
    if sign is not None:
        sign_release(folder, sign)
        files += folder.glob("SHA256SUMS.*sig")
    if registry is not None:
        lines = [lacks] if (lacks := write_record(folder, registry)) else []
        files.append(registry)
    return Outcome([*map(str, files), *lines], {"release": folder, "files": files})
