"""Files of a release, computed again from its tensors, settings and public seeds, and compared.

Whoever edits a release can write new checksums. The tensors are bound to the statement, and draw all
other files: so the real graph, real people or the graph of another release have no place among them.
"""

import filecmp
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightning_dpg.release.agreement import DRAWN, GRAPH
from lightning_dpg.release.draws import drawn_with, write_draws
from lightning_dpg.release.graph_files import FORMATS
from lightning_dpg.release.reader import read_attributes
from lightning_dpg.release.recipe import first_line
from lightning_dpg.release.writer import ATTRIBUTE_TABLE, ATTRIBUTES
from lightning_dpg.run_folder import GENERATOR


def faults_of_draws(release: Path, method: Any, content: dict[str, Any]) -> Iterator[str]:
    """Draw all graphs, and what is drawn beside them, again, and compare the files.

    It takes as long as ``generate``, and as much room on the disk for temporary files.

    Args:
        release: Folder of the release, which has plain files only.
        method: The method, around its released tensors.
        content: Content of ``privacy.json``.
    """
    names = {path.name for path in release.iterdir() if DRAWN.fullmatch(path.name)}
    graphs = [match for name in names if (match := GRAPH.fullmatch(name))]
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
