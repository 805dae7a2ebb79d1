"""``plan``: noise, steps, epsilon and delta of a run, without data."""

import argparse
from typing import get_args

from lightning_dpg.advice import GOALS, OF_SETS, Facts, Goal, Kind, hint, reports_line

KINDS = get_args(Kind)


def run(args: list[str]) -> None:
    """Print the noise multiplier for a budget, and epsilons of nearby settings."""
    parser = argparse.ArgumentParser(
        prog="lightning_dpg plan",
        usage="lightning_dpg plan --epsilon E --delta D --sample-rate Q --steps T "
        "[--noise-multiplier S]\n    [--nodes N] [--edges M] [--goal GOAL] [--kind KIND] "
        "[--attributes]\n   or: lightning_dpg plan --epsilon E --goal GOAL [--delta D] [--nodes N] "
        "[--edges M] [--kind KIND] [--attributes]",
        description="Noise, steps, epsilon and delta of a run, or a method for a goal, without any "
        "data.",
    )
    parser.add_argument("--epsilon", type=float, required=True, help="budget")
    parser.add_argument("--delta", type=float, help="budget; with --goal alone 0 by default")
    parser.add_argument("--sample-rate", type=float, help="probability that a step reads an edge")
    parser.add_argument("--steps", type=int, help="private (critic) steps")
    parser.add_argument(
        "--noise-multiplier", type=float, help="noise to judge, instead of solving for it"
    )
    parser.add_argument("--nodes", type=int, help="number of nodes, for a hint on methods")
    parser.add_argument(
        "--edges", type=int, help="number of edges, if it is public or released, for a better hint"
    )
    parser.add_argument("--goal", choices=GOALS, help="what the hint is for (links)")
    parser.add_argument("--kind", choices=KINDS, help="kind of the graph (undirected)")
    parser.add_argument(
        "--attributes", action="store_true", help="attributes of the nodes are public"
    )
    options = parser.parse_args(args)
    if options.nodes is None:
        given = {"--edges": options.edges, "--kind": options.kind, "--goal": options.goal}
        for name, value in given.items():
            if value is not None and value not in OF_SETS:
                parser.error(f"{name} needs --nodes")
    if not 2 <= (2 if options.nodes is None else options.nodes) or (options.edges or 0) < 0:
        parser.error("--nodes must be 2 or more and --edges 0 or more")
    plans_steps = _plans_steps(parser, options)
    facts = _facts(parser, options)
    if facts is not None and not plans_steps:
        print(_hints(facts))
        return
    # Start-up time: a wrong option is refused before numpy is imported.
    from lightning_dpg.running.plan import plan

    print(
        plan(
            epsilon=options.epsilon,
            delta=options.delta,
            sample_rate=options.sample_rate,
            steps=options.steps,
            noise_multiplier=options.noise_multiplier,
        )
    )
    if facts is not None:
        print(f"\n{_hints(facts)}")


def _hints(facts: Facts) -> str:
    """A method for the goal, and the size of a release of all links."""
    reports = reports_line(facts)
    return f"hint: {hint(facts)}" + (f"\nhint: {reports}" if reports else "")


def _plans_steps(parser: argparse.ArgumentParser, options: argparse.Namespace) -> bool:
    """Whether a training is described; a goal needs none, and half a training is refused."""
    training = {"--sample-rate": options.sample_rate, "--steps": options.steps}
    if options.goal and options.noise_multiplier is None and set(training.values()) == {None}:
        return False
    needed = {"--delta": options.delta, **training}
    missing = [name for name, value in needed.items() if value is None]
    if missing:
        parser.error(
            f"the following arguments are required: {', '.join(missing)}\n"
            "for the choice of a method give --goal in place of --sample-rate and --steps"
        )
    return True


def _facts(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Facts | None:
    """Public facts of a command line; None without a number of nodes, which one graph needs."""
    goal: Goal = options.goal or "links"
    kind: Kind = options.kind or ("set" if goal in OF_SETS else "undirected")
    if options.nodes is None and goal not in OF_SETS:
        return None
    try:
        return Facts(
            goal,
            options.epsilon,
            options.nodes or 2,
            options.edges,
            kind,
            (options.delta or 0) > 0,
            options.attributes,
        )
    except ValueError as error:
        parser.error(str(error))
