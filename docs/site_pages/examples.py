"""Pages of the notebooks in ``examples/``, with the outputs that are stored in them."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from site_pages.source import ROOT

_INDEX = """\
# Examples

*Four notebooks, which the tests of the project run. Each page is a notebook with its outputs, and links to its
file for Jupyter (`pip install jupyterlab pandas`, beside lightning_dpg).*

| notebook | what it shows |
|---|---|
"""
_FEDERATED = """
## Federated averaging

`examples/federated_with_flower.py` of a clone trains the encoder of `LDPGromovWasserstein` (`weights: private`) in three processes of
clients, where Flower is installed (tried with 1.41). Each client clips its update. The server adds the updates, pays for the sum, adds the
noise, and sends the new weights; clients make no reports of their nodes here.

```bash
pip install "flwr>=1.41,<1.43"
python -m examples.federated_with_flower
```

The connection is **not encrypted** and stays on this machine, where another user could connect as well: it shows the protocol, and is no
deployment. Flower's telemetry is off, and no proxy is used. Without Flower, clients train one after another in one process, or in the
processes of Lightning (`--config ddp.yaml`).

## Scores of SDMetrics

`examples/database_with_sdmetrics.py` of a clone prints the scores of SDMetrics for [a database](../database.md), where that library is
installed, beside those of the real tables with keys at random. Its trends between tables do not pair the values at both ends of
a relation, which `evaluate` does.

```bash
pip install sdmetrics
python -m examples.database_with_sdmetrics --epsilon 1
```
"""
# The theme has a style for tables.
_STYLE = re.compile(r"<style.*?</style>\s*", re.DOTALL)
_PANDAS = '<table border="1" class="dataframe">'


def pages() -> dict[str, str]:
    """Text of each page by its path."""
    rows = [f"| [{title(path)}]({path.stem}.md) | {lead(path)} |" for path in _notebooks()]
    texts = {_page(path): page(path) for path in _notebooks()}
    return {"examples/index.md": _INDEX + "\n".join(rows) + "\n" + _FEDERATED} | texts


def files() -> dict[str, str]:
    """The notebooks themselves, by path."""
    return {f"examples/{path.name}": path.read_text(encoding="utf-8") for path in _notebooks()}


def navigation() -> list[dict[str, str]]:
    """Title and path of each page, for the navigation."""
    return [{title(path): _page(path)} for path in _notebooks()]


def title(path: Path) -> str:
    """The heading of a notebook."""
    return _opening(path).splitlines()[0].removeprefix("# ")


def lead(path: Path) -> str:
    """The first sentence of a notebook."""
    text = " ".join(_opening(path).partition("\n\n")[2].split())
    return re.split(r"(?<=[.?]) ", text, maxsplit=1)[0]


def page(path: Path) -> str:
    """A notebook in Markdown.

    Args:
        path: Its file.
    """
    parts = [part for cell in _cells(path) for part in _parts(cell)]
    opening, *rest = (re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", part) for part in parts)
    return "\n\n".join([opening, f"[The notebook itself]({path.name})", *rest]) + "\n"


def _notebooks() -> list[Path]:
    return sorted((ROOT / "examples").glob("*.ipynb"))


@cache
def _cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def _opening(path: Path) -> str:
    return _joined(_cells(path)[0]["source"])


def _page(path: Path) -> str:
    return f"examples/{path.stem}.md"


def _parts(cell: dict[str, Any]) -> list[str]:
    """A cell in Markdown, and its outputs."""
    source = _joined(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    if source.startswith("!"):
        code = fenced("console", f"$ {source[1:]}")
    else:
        code = fenced("python", source)
    return [code, *map(_output, cell["outputs"])]


def _output(output: dict[str, Any]) -> str:
    """An output in the richest of its formats."""
    data = output.get("data", {})
    if "text/markdown" in data:
        text = _joined(data["text/markdown"])
        return f'<div class="output" markdown="1">\n\n{text}\n\n</div>'
    if "text/html" in data:
        text = _STYLE.sub("", _joined(data["text/html"])).replace(_PANDAS, "<table>")
        return f'<div class="output">\n{text}\n</div>'
    return fenced("text", _joined(data["text/plain"] if data else output["text"]))


def fenced(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.strip()}\n```"


def _joined(lines: str | list[str]) -> str:
    """Text that a notebook holds as one string or as lines."""
    return "".join(lines)
