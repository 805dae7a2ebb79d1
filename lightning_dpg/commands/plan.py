"""``plan``: noise, steps, epsilon and delta of a run, without data."""

import argparse


def run(args: list[str]) -> None:
    """Print the noise multiplier for a budget, and epsilons of nearby settings."""
    parser = argparse.ArgumentParser(
        prog="lightning_dpg plan",
        description="Noise, steps, epsilon and delta of a run, without any data.",
    )
    parser.add_argument("--epsilon", type=float, required=True, help="budget")
    parser.add_argument("--delta", type=float, required=True, help="budget")
    parser.add_argument(
        "--sample-rate", type=float, required=True, help="probability that a step reads an edge"
    )
    parser.add_argument("--steps", type=int, required=True, help="private (critic) steps")
    parser.add_argument(
        "--noise-multiplier", type=float, help="noise to judge, instead of solving for it"
    )
    parser.add_argument("--nodes", type=int, help="number of nodes, for a hint on methods")
    parser.add_argument(
        "--edges", type=int, help="number of edges, if it is public, for a better hint"
    )
    options = parser.parse_args(args)
    if options.edges is not None and options.nodes is None:
        parser.error("--edges needs --nodes")
    if not 2 <= (2 if options.nodes is None else options.nodes) or (options.edges or 0) < 0:
        parser.error("--nodes must be 2 or more and --edges 0 or more")
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
    if options.nodes is not None:
        # Start-up time: the import brings PyTorch, which the plan alone does not need.
        from lightning_dpg.methods.advice import link_hint

        print(f"\nhint: {link_hint(options.epsilon, options.nodes, options.edges)}")
