"""``plan``: noise, steps, epsilon and delta of a run, without data."""

from typing import Annotated, Any

from lightning_dpg.advice import OF_COLUMNS, OF_SETS, Facts, Goal, Kind, hints_of, recommend
from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome

_MANY = 2_000
"""Nodes times epsilon beyond which no plan is lost in its noise."""


def plan(
    *,
    epsilon: float,
    delta: float | None = None,
    sample_rate: float | None = None,
    steps: int | None = None,
    noise_multiplier: float | None = None,
    nodes: Annotated[int | None, "--num-nodes", "--nodes"] = None,
    edges: Annotated[int | None, "--num-edges", "--edges"] = None,
    graphs: Annotated[int | None, "--num-graphs"] = None,
    goal: Goal | None = None,
    kind: Kind | None = None,
    attributes: bool = False,
    hubs: bool = False,
    row_epsilon: float | None = None,
    full: bool = False,
) -> Outcome:
    """Plan noise, steps, epsilon and delta of a run, or choose a method for a goal, without any data.

    A training needs --delta, --sample-rate and --steps, the choice of a method --goal.

    Args:
        epsilon: See :func:`lightning_dpg.run.plan.plan`.
        delta: Budget; with ``--goal`` alone 0 by default.
        sample_rate: See :func:`lightning_dpg.run.plan.plan`.
        steps: See :func:`lightning_dpg.run.plan.plan`.
        noise_multiplier: See :func:`lightning_dpg.run.plan.plan`.
        nodes: Number of nodes, for a hint on methods.
        edges: Number of edges, if it is public or released, for a better hint; of a set those of all
            graphs together.
        graphs: Number of graphs of a set, for a better hint.
        goal: What the hint is for; by default ``links``.
        kind: Kind of the graph; by default ``undirected``.
        attributes: Attributes of the nodes are public.
        hubs: One node in a hundred, or more, has over ten times the mean degree, for a better hint on links
            beyond degrees.
        row_epsilon: Budget of the private columns of one node, to show the protection of these
            together with relations of the node.
        full: Say epsilon by opacus, and of few nodes what the method serves: both import PyTorch.

    Example:
        python -m lightning_dpg plan --goal links --epsilon 1 --num-nodes 20000 --num-edges 200000
    """
    if goal in OF_SETS:
        if edges is not None and graphs is None:
            raise CommandError("--num-edges of a set needs --num-graphs")
    elif graphs is not None:
        raise CommandError(f"--num-graphs needs a goal of sets: {', '.join(sorted(OF_SETS))}")
    elif nodes is None:
        for name, value in {"--num-edges": edges, "--kind": kind, "--goal": goal}.items():
            if value is not None:
                raise CommandError(f"{name} needs --num-nodes")
    for name, count, fewest in (("nodes", nodes, 2), ("graphs", graphs, 1), ("edges", edges, 0)):
        if count is not None and count < fewest:
            raise CommandError(f"--num-{name} must be {fewest} or more, got {count}")
    training = {"--sample-rate": sample_rate, "--steps": steps}
    is_trained = not goal or noise_multiplier is not None or set(training.values()) != {None}
    missing_options = [
        name for name, value in {"--delta": delta, **training}.items() if value is None
    ]
    if is_trained and missing_options:
        raise CommandError(
            f"the following arguments are required: {', '.join(missing_options)}\n"
            "for the choice of a method give --goal in place of --sample-rate and --steps"
        )
    hints = []
    if nodes is not None or goal in OF_SETS:
        goal, kind = goal or "links", kind or ("set" if goal in OF_SETS else "undirected")
        has_delta = bool(delta)
        size = (nodes or 2, edges, kind, has_delta, attributes, graphs)
        facts = Facts(goal, epsilon, *size, has_hubs=hubs)
        hints = [*hints_of(facts), *filter(None, [_served(facts, delta or 0.0, full)])]
    lines = [f"hint: {text}" for text in hints]
    values: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "hints": hints}
    if delta is not None and sample_rate is not None and steps is not None:
        # Start-up time: a wrong option is refused before numpy is imported.
        from lightning_dpg.run.plan import Plan
        from lightning_dpg.run.plan import plan as plan_of

        result = plan_of(
            epsilon=epsilon,
            delta=delta,
            sample_rate=sample_rate,
            steps=steps,
            noise_multiplier=noise_multiplier,
        )
        assert isinstance(result, Plan)  # as without a goal
        second = result.second_opinion if full else None
        opinion = [] if second is None else [f"epsilon by opacus: {second}"]
        lines = [*opinion, str(result), *([""] if lines else []), *lines]
        values |= {
            "sample_rate": sample_rate,
            "steps": steps,
            "noise_multiplier": result.sigma,
            "epsilon_spent": result.epsilon,
            "epsilon_by_opacus": None if second is None else str(second),
            "max_steps": result.max_steps,
        }
    if row_epsilon is not None:
        groups = _with_rows(epsilon, delta or 0.0, row_epsilon)
        lines += [*([""] if lines else []), *_lines_of(groups)]
        values |= {"row_epsilon": row_epsilon, "together": groups}
    return Outcome(lines, values)


def _with_rows(epsilon: float, delta: float, row_epsilon: float) -> list[dict[str, float]]:
    """Return epsilon and delta of the private columns of a node with numbers of its relations."""
    if not row_epsilon > 0:
        raise CommandError(f"--row-epsilon must be positive, got {row_epsilon:g}")
    # Start-up time: as below.
    from lightning_dpg.privacy.budget import Budget
    from lightning_dpg.privacy.meaning import NUMBERS_OF_EDGES, group_budget, joint_budget

    groups = []
    for size in (0, *NUMBERS_OF_EDGES):
        units = group_budget(epsilon, delta, size)
        joint = joint_budget(units, Budget(row_epsilon, 0.0))
        groups.append({"relations": size, "epsilon": joint.epsilon, "delta": joint.delta})
    return groups


def _lines_of(groups: list[dict[str, float]]) -> list[str]:
    """Write the table of the private columns of a node."""
    head = f"{'relations':>10}{'epsilon':>10}{'delta':>10}"
    return [
        "private columns of one node together with relations of it:",
        head,
        *(f"{g['relations']:>10}{g['epsilon']:>10.4g}{g['delta']:>10.3g}" for g in groups),
    ]


def _served(facts: Facts, delta: float, full: bool) -> str:
    """Say what the method serves at this number of nodes; nothing of many nodes, where noise is small."""
    if facts.kind == "set" or facts.goal in OF_COLUMNS or facts.num_nodes * facts.epsilon > _MANY:
        return ""
    if not full:
        return f"{facts.num_nodes:,} nodes are few: see with --full what noise may hide of them"
    # Start-up time: methods import PyTorch.
    from lightning_dpg import methods
    from lightning_dpg.preflight.budget import served
    from lightning_dpg.privacy.budget import Budget

    method = getattr(methods, recommend(facts).method)(num_nodes=facts.num_nodes)
    if method.capabilities.is_trained:
        return ""
    method.take_kind(facts.kind, facts.num_nodes // 2 if facts.kind == "bipartite" else None)
    plan = method.plan(Budget(facts.epsilon, delta), 1)
    return served(plan, facts.epsilon, facts.num_nodes).sentence
