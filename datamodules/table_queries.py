"""Ibis expressions that number nodes and make each edge one record."""

from typing import Any

from lightning_dpg.graph.pair_space import Kind


def ibis_module() -> Any:
    """Return Ibis, which is optional."""
    import ibis

    return ibis


def natural_order(names: Any, digits: int, group: str) -> list[Any]:
    """Return the keys of the natural order of names, see :func:`natural_key`.

    Args:
        names: Column of text.
        digits: Length that no number within a name exceeds.
        group: First group of a regular expression in its replacement.
    """
    # A mark below all characters ends the text before a number, as the end of a name does.
    padded = names.re_replace("([0-9]+)", "\x01" + "0" * digits + group)
    return [padded.re_replace(f"[0-9]*([0-9]{{{digits}}})", group), names]


def numbered_ends(nodes: Any, kind: Kind) -> dict[str, Any]:
    """Return the tables that give the number of a ``source`` and of a ``target``.

    Args:
        nodes: Table of all nodes: id, side and number.
        kind: Kind of the graph; of a bipartite one, a target is on the second side.
    """
    sides = {"source": 0, "target": 1 if kind == "bipartite" else 0}
    return {
        name: nodes.filter(nodes.side == side).select(
            **{name: nodes.id, f"{name}_number": nodes.number}
        )
        for name, side in sides.items()
    }


def outside_ids(rows: Any, ends: dict[str, Any]) -> Any:
    """Return the ids of rows that no node has."""
    ids = [rows.anti_join(found, name).select(id=rows[name]) for name, found in ends.items()]
    return ibis_module().union(*ids, distinct=True)


def canonical_pairs(rows: Any, ends: dict[str, Any], kind: Kind) -> Any:
    """Return each record once, without loops: ``low`` and ``high``, and what was merged.

    ``repeats`` is the number of rows of a record, ``links`` that of their directions.
    """
    ibis = ibis_module()
    numbered = rows.join(ends["source"], "source").join(ends["target"], "target")
    low, high = one, other = numbered.source_number, numbered.target_number
    if kind == "undirected":
        low, high = ibis.least(one, other), ibis.greatest(one, other)
    pairs = numbered.select(
        low=low, high=high, up=ibis.ifelse(one < other, 1, 0).cast("int64"), is_loop=one == other
    )
    pairs = pairs.filter(~pairs.is_loop)
    return pairs.group_by(["low", "high"]).aggregate(
        repeats=pairs.count().cast("int32"),
        links=(pairs.up.max() - pairs.up.min() + 1).cast("int8"),
    )
