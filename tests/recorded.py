"""Recorded results of benchmarks, made by hand."""

from lightning_dpg.metrics.queries import QUERIES


def result(method, run=0, failure=None, spent=None, role="method", epsilon=1.0, **errors):
    """A fabricated result; the queries that are not named have error 0."""
    answers = {
        query: {"real": 2.0, "synthetic": 1.0, "error": errors.get(query, 0.0), "note": ""}
        for query in QUERIES
    }
    privacy = {
        "relation": "edge",
        "mode": "plain",
        "epsilon": epsilon if spent is None else spent,
        "delta": 1e-6,
        "accountant": "PRV",
        "guarantee": f"what {method} guarantees",
    }
    base = {"name": f"{method}-{run}", "method": method, "role": role, "graph": "karate"}
    return {
        **base,
        "epsilon": epsilon,
        "run": run,
        "digest": "",
        "failure": failure,
        "seconds": {"fit": 2.0 + run, "draw": 0.5, "total": 3.0},
        **({} if failure else {"privacy": privacy, "answers": answers}),
    }
