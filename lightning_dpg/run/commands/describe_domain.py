"""``describe-domain``: a file of domains of private columns, to fill in from public knowledge."""

from pathlib import Path
from typing import Annotated

import yaml

from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome

_HEAD = """\
# All values of each private column, from public knowledge: a code book, a form, a list of regions.
# Do not copy them from the data: a rare value gives its owner away, and nobody pays for that read.
# Delete the columns that are not private. Complete the others, by one of these forms:
#   age: [18, 30, 45, 60, 100]         borders of bins; numbers outside are in the outer bins
#   region: [north, south, missing]    categories; all other values are "other"
"""


def describe_domain(
    table: Path,
    *,
    column: Annotated[str | None, "--nodes.column"] = None,
    out: Path = Path("domains.yaml"),
) -> Outcome:
    """Write a file of domains for the columns of a table of nodes, for you to fill in.

    The file has the names of the columns, and nothing of their values, which are private: you list the
    values that are possible, from public knowledge. A fit refuses the file until each column has some.

    Args:
        table: Table in CSV, TSV or Parquet with a row per node.
        column: Column of the ids, if its name does not show it.
        out: New file of domains.

    Example:
        python -m lightning_dpg describe-domain people.csv --out domains.yaml
    """
    if out.exists():
        raise CommandError(f"{out}: it is there already\ngive another file: --out NAME.yaml")

    # Start-up time: a file that is there already is refused before numpy is imported.
    from lightning_dpg.formats.attribute_tables import read_attributes

    names = list(read_attributes(table, column).columns)
    lines = [
        yaml.safe_dump({name: []}, allow_unicode=True, default_flow_style=None) for name in names
    ]
    out.write_text(_HEAD + "".join(lines), encoding="utf-8")
    said = (
        f"{out}: complete the values of {len(names)} columns, or delete those that are not private"
    )
    return Outcome([said], {"file": out, "columns": names})
