"""``budget init``, ``register``, ``grant`` and ``close``: what an owner does with a budget book."""

import argparse
import math
import re
import sys
from pathlib import Path
from typing import Any

from lightning_dpg.errors import CommandError, Refusal


def add_token(parser: argparse.ArgumentParser, does: str = "file with the owner's token") -> None:
    """Add the option of the owner's token."""
    parser.add_argument("--token", type=Path, metavar="FILE", help=does)


def add_registration(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``register``."""
    parser.add_argument("name", metavar="NAME", help="name of the data in the book")
    parser.add_argument("--data", required=True, help="file, folder of a set, or name, as of fit")
    parser.add_argument(
        "--relation", required=True, help="what the total protects: edge, node or local_graph"
    )
    parser.add_argument("--epsilon", type=float, required=True, help="total of all releases")
    parser.add_argument("--delta", type=float, required=True, help="total of all releases")
    parser.add_argument(
        "--kind", default="undirected", help="undirected, directed or bipartite, as in fit"
    )
    parser.add_argument("--undirected", action="store_true", help="drop directions, as in fit")
    parser.add_argument("--columns.source", help="column of the first id of each edge, as in fit")
    parser.add_argument("--columns.target", help="column of the second id, as in fit")
    parser.add_argument(
        "--columns.missing_ids",
        choices=["refuse", "drop"],
        help="rows of edges without an id, as in fit",
    )
    parser.add_argument(
        "--nodes", "--nodes.ids", dest="nodes.ids", metavar="FILE", help="all nodes, as in fit"
    )
    parser.add_argument("--nodes.column", help="its column of ids, as in fit")
    parser.add_argument("--nodes.left", metavar="FILE", help="ids of all left nodes, as in fit")
    parser.add_argument("--nodes.right", metavar="FILE", help="ids of all right nodes, as in fit")
    parser.add_argument("--nodes.side_column", help="its column of sides, as in fit")
    parser.add_argument(
        "--max-degree", type=int, help="edges of a node at most (public), for a node-level total"
    )
    parser.add_argument("--words", default="", help="words of the owner")
    parser.add_argument(
        "--part-of",
        default="",
        metavar="GROUP",
        help="you declare: each record lies in one part of GROUP, and public facts say in which",
    )
    parser.add_argument(
        "--two-persons",
        action="store_true",
        help="runs need grants, and grants need approval by a second person",
    )
    parser.add_argument(
        "--other-people",
        action="store_true",
        help="register data although more than half of their nodes are those of other registered data",
    )
    add_token(parser)


def add_grant(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``grant``."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="data set")
    parser.add_argument("--to", metavar="USER", help="user of the system, or of PostgreSQL")
    parser.add_argument("--epsilon", type=float, help="largest sum over all runs of the user")
    parser.add_argument("--delta", type=float, default=0.0, help="largest sum; 0 by default")
    parser.add_argument("--approve", type=int, metavar="NUMBER", help="approve a grant of another")
    parser.add_argument("--role", help="of a user of PostgreSQL: spender or owner")
    add_token(parser)


def init(book: Any, options: argparse.Namespace) -> None:
    """Say what was made."""
    print(f"made the budget book {book.url}\nit is as private as the data: keep a backup")
    if options.token:
        print(f"made the token of its owner, {options.token}: keep it where no spender can read it")


def register(book: Any, options: argparse.Namespace) -> None:
    """Register data, with the total of all their releases."""
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.book.identity import protected_unit
    from lightning_dpg.book.refusals import in_common
    from lightning_dpg.book.rows import same_edges
    from lightning_dpg.privacy.budget import Budget
    from lightning_dpg.privacy.events import Relation

    relation = Relation(options.relation)
    _check_budget("a total", options.epsilon, options.delta, is_positive=True)
    if not options.name.strip():
        raise CommandError("a data set needs a name")
    if options.max_degree is not None and options.max_degree < 1:
        raise CommandError(f"--max-degree must be 1 or more, got {options.max_degree}")
    content = _data(options).identity()
    found, people = book.fingerprint(content), book.marks(content)
    near = [
        known
        for known in book.same_people(found, people, relation)
        if not options.part_of or known.part_of != options.part_of
    ]
    if near and not options.other_people:
        raise _same_people(near[0], in_common(near[0], found, content), options.name)
    book.register(
        options.name,
        found,
        relation=relation,
        total=Budget(options.epsilon, options.delta),
        record_unit=protected_unit(relation, found.record),
        words=options.words,
        max_degree=options.max_degree,
        part_of=options.part_of,
        two_persons=options.two_persons,
        people=people,
    )
    print(
        f"registered {options.name}: relation {relation}, record "
        f"{book.data_set(options.name).record}, total epsilon {options.epsilon:g}, delta "
        f"{options.delta:g}"
    )
    for other in same_edges(book.database, options.name):
        print(
            f"the same edges are registered as {other.name!r} for the relation {other.relation}: "
            "neither total has the runs of the other one"
        )
    for known in near:
        print(
            f"warning: {in_common(known, found, content)}; if they are on the same people, their totals "
            "add up",
            file=sys.stderr,
        )
    if options.two_persons:
        print("no run is let in before a grant that two persons made: budget grant")


def grant(book: Any, options: argparse.Namespace) -> None:
    """Grant part of a total to a user, approve a grant, or give a role on PostgreSQL."""
    asked = [options.role, options.approve, options.epsilon]
    if sum(each is not None for each in asked) != 1:
        raise CommandError(
            "say one of three things:\nNAME --to USER --epsilon E [--delta D]\n--approve NUMBER\n"
            "--role spender --to USER"
        )
    if options.approve is not None:
        made = book.approve(options.approve)
        print(f"approved {_in_words(made)}")
        return
    if options.to is None or (options.name is None) != (options.role is not None):
        raise CommandError("give --to USER, and the NAME of the data set unless with --role")
    if options.role is not None:
        book.give_role(options.role, options.to)
        print(f"{book.url}: {options.to} has the role {options.role}")
        return
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.privacy.budget import Budget

    _check_budget("a grant", options.epsilon, options.delta)
    is_first = not book.grants(options.name)
    made = book.grant(options.name, options.to, Budget(options.epsilon, options.delta))
    print(f"granted {_in_words(made)}")
    has_two_persons = book.data_set(options.name).two_persons
    if is_first and not has_two_persons:
        print("from now on, only users with a grant may spend on it")
    if has_two_persons:
        print(f"it waits for another user: budget grant --approve {made.number}")


def close(book: Any, options: argparse.Namespace) -> None:
    """Let no further run spend on a data set."""
    book.close_data_set(options.name)
    is_open = [str(run.number) for run in book.runs(options.name) if run.is_open]
    print(f"closed {options.name} for good: no further run may spend on it")
    if is_open:
        print(f"these runs end normally: {', '.join(is_open)}")


def _same_people(known: Any, common: str, name: str) -> CommandError:
    """Say how to go on with data on the people of another data set, before anything is registered.

    Args:
        known: The other data set.
        common: Which nodes they have in common.
        name: Name of the new data set.
    """
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.book.refusals import SAME_PEOPLE

    lines = [
        f"{common}: {name!r} is not registered",
        SAME_PEOPLE.format(known.name),
        "other people: register with --other-people",
    ]
    if known.part_of:
        lines.insert(2, f"no edge in both: register with --part-of {known.part_of}")
    return CommandError("\n".join(lines))


def _in_words(grant: Any) -> str:
    epsilon, delta = grant.budget
    return (
        f"{grant.number}: {grant.grantee} on {grant.dataset}, epsilon {epsilon:g}, delta {delta:g}"
    )


def _check_budget(name: str, epsilon: float, delta: float, *, is_positive: bool = False) -> None:
    at_least = "above 0" if is_positive else "of 0 or more"
    if not 0 <= epsilon < math.inf or (is_positive and not epsilon) or not 0 <= delta < 1:
        raise CommandError(
            f"{name} needs a finite epsilon {at_least} and a delta in [0, 1), got "
            f"{epsilon:g} and {delta:g}"
        )


def _data(options: argparse.Namespace) -> Any:
    """Data module of the data to register, set up for a fit."""
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.datamodules import (
        EdgeListDataModule,
        GraphSetDataModule,
        TUGraphDataModule,
    )
    from lightning_dpg.datamodules.built_in_sets import BUILT_IN_SETS

    data: Any
    is_set = options.data in BUILT_IN_SETS or Path(options.data).expanduser().is_dir()
    if is_set and options.kind != "undirected":
        raise CommandError(f"{options.data}: graphs of a set are undirected: leave out --kind")
    groups: dict[str, dict[str, Any]] = {"nodes": {}, "columns": {}}
    for option, value in vars(options).items():
        group, _, name = option.partition(".")
        if name and value is not None:
            groups[group][name] = value
            if is_set:
                raise CommandError(
                    f"{options.data}: a set of graphs has its own nodes: leave out --{option}"
                )
    if options.data in BUILT_IN_SETS:
        data = GraphSetDataModule(options.data, undirected=options.undirected)
    elif is_set:
        data = TUGraphDataModule(options.data, undirected=options.undirected)
    else:
        data = EdgeListDataModule(
            options.data,
            undirected=options.undirected,
            kind=options.kind,
            nodes=groups["nodes"],
            columns=groups["columns"],
        )
    try:
        data.setup("fit")
    except Refusal as error:
        raise CommandError(_with_options_of_register(str(error))) from error
    return data


def _with_options_of_register(text: str) -> str:
    """A message on data whose advice names the options of this command in place of those of fit."""
    text = text.replace("--data.undirected true", "--undirected")
    text = text.replace("--data.kind bipartite, or ", "")  # the message names both
    return re.sub(r"--data\.(kind|nodes|columns)\b", r"--\1", text)
