"""Files of a release, computed again from its tensors, settings and public seeds, and compared.

Whoever edits a release can write new checksums. The tensors are bound to the statement, and draw all
other files: so the real graph, real people or the graph of another release have no place among them.
"""

import filecmp
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.release.card.document import CARD, PAGE
from lightning_dpg.release.card.topics import (
    ADDED_UP,
    LEFT_OUT,
    NOT_ADDED_UP,
    OF_THE_OWNER,
    TOPICS,
    Facts,
    statement_of,
    topics,
)
from lightning_dpg.release.graph_files import FORMATS
from lightning_dpg.release.reader import first_line, read_attributes
from lightning_dpg.release.writer import (
    ATTRIBUTE_TABLE,
    ATTRIBUTES,
    FEATURES,
    drawn_with,
    write_draws,
)
from lightning_dpg.run_folder import GENERATOR, LEARNER, STATEMENT, UNSUMMED

_GRAPH = re.compile(r"synthetic-([0-9]+)\.(edges|graphml|npz|parquet)")
_DRAWN = re.compile(
    rf"{_GRAPH.pattern}|people-[0-9]+\.csv|transfers-[0-9]+\.(csv|parquet)|"
    + "|".join(map(re.escape, (FEATURES, ATTRIBUTES, ATTRIBUTE_TABLE)))
)
_WRITTEN = frozenset({GENERATOR, LEARNER, STATEMENT, CARD, PAGE}) | UNSUMMED
# Topics whose texts the owner gives, or whose findings come from files of the owner.
_GIVEN = {
    "administrative": {*OF_THE_OWNER, "card_date", "card_lightning_dpg"},
    "data": {"description", "settings_chosen_on"},
    "evaluation": {"audit", "attack"},
}


def odd_files(release: Path) -> Iterator[str]:
    """Find links, folders and devices, which are not read."""
    for path in sorted(release.iterdir()):
        if path.is_symlink() or not path.is_file():
            yield f"{path.name}: no plain file, and a release has no links and no folders: remove it"


def is_foreign(name: str) -> bool:
    """Return whether no writer of releases makes a file of this name."""
    return name not in _WRITTEN and _DRAWN.fullmatch(name) is None


def faults_of_draws(release: Path, method: Any, content: dict[str, Any]) -> Iterator[str]:
    """Draw all graphs, and what is drawn beside them, again, and compare the files.

    It takes as long as ``generate``, and as much room on the disk for temporary files.

    Args:
        release: Folder of the release, which has plain files only.
        method: The method, around its released tensors.
        content: Content of ``privacy.json``.
    """
    names = {path.name for path in release.iterdir() if _DRAWN.fullmatch(path.name)}
    graphs = [match for name in names if (match := _GRAPH.fullmatch(name))]
    seeds, suffixes = {match[1] for match in graphs}, {match[2] for match in graphs}
    formats = [suffix for suffix in (*FORMATS, "parquet") if suffix in suffixes] or None
    with tempfile.TemporaryDirectory() as scratch:
        drawn = Path(scratch)
        try:
            if (release / GENERATOR).exists():
                method.node_attributes = read_attributes(release / ATTRIBUTES, method.node_names)
            has_table = ATTRIBUTE_TABLE in names
            write_draws(method, max(1, len(seeds)), drawn, formats, has_table=has_table)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  tensors that were edited end draws in any way
            yield f"{GENERATOR}: its tensors draw no graph ({first_line(error)})"
            return
        ours = {path.name for path in drawn.iterdir()}
        yield from (f"{name}: missing, and its tensors draw it" for name in sorted(ours - names))
        yield from (f"{name}: its tensors draw no such file" for name in sorted(names - ours))
        for name in sorted(ours & names):
            if not filecmp.cmp(release / name, drawn / name, shallow=False):
                yield f"{name}: not what its tensors draw{_other_versions(content)}"


def faults_of_texts(
    method: PrivateModule, content: dict[str, Any], num_graphs: int
) -> Iterator[str]:
    """Compare the topics of a ``privacy.json`` with those of its statement and settings.

    Texts of the owner are left out. Epsilon by opacus, which has rounding errors, is compared apart.

    Args:
        method: The method, around its released tensors.
        content: Content of ``privacy.json``, whose card is of this version.
        num_graphs: Number of synthetic graphs in the release; 0 for features of graphs.
    """
    about, accounting = content["administrative"], content["accounting"]
    other_runs, versions = accounting.get("other_runs"), about.get("drawn_with")
    if other_runs not in (None, ADDED_UP, LEFT_OUT, NOT_ADDED_UP):
        yield f"{STATEMENT}: its accounting says of other runs what no run says"
    facts = Facts(
        method_path=about["method"],
        settings=about["settings"],
        is_set=method.capabilities.reads is GraphSetRecords,
        max_occurrences=content["privacy_unit"]["max_occurrences"],
        num_graphs=num_graphs or None,
        date=about["date"],
        version=about["lightning_dpg"],
        configuration=about["configuration_sha256"],
        other_runs=other_runs,
        drawn_with=versions,
    )
    expected = topics(statement_of(content), facts)
    for topic in TOPICS:
        given = _GIVEN.get(topic, set()) | {"second_opinion"}
        said, ours = content[topic], expected[topic]
        for name in sorted((said.keys() | ours.keys()) - given):
            if name not in ours or said.get(name) != ours[name]:
                yield f"{STATEMENT}: its {topic}.{name} is not what its statement and settings say"


def _other_versions(content: dict[str, Any]) -> str:
    """Say that other versions may be the reason of a difference; nothing where they are the same."""
    written = content.get("administrative", {}).get("drawn_with")
    if not isinstance(written, dict):
        return (
            " here, and it does not say with which versions it was drawn: try the one of its card"
        )
    here = drawn_with()
    other = [
        f"{name} {written.get(name)} (here {here.get(name)})"
        for name in sorted(written.keys() | here.keys())
        if written.get(name) != here.get(name)
    ]
    return f" here; it was drawn with {', '.join(other)}: verify it with these" if other else ""
