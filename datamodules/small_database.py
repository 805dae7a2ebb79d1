"""A small generated database: persons, accounts and merchants, and who owns, pays and buys (public)."""

from typing import Any

import numpy as np
import pyarrow

from lightning_dpg.datamodules.small_bank import FACTS, people, transfers


def small_database() -> dict[str, Any]:
    """Draw 1,000 persons, their 1,300 accounts, and 60 merchants, with the relations of half a year.

    Active persons have more accounts, which pay more often, and buy at more merchants; most current
    accounts pay, and few savings accounts do. Transfers are those of :func:`small_bank`, by age and
    region of the first owner. Persons buy within their region, and each branch has an age of its own.

    Returns:
        The content of a schema, whose tables are part of it. The ids of each table are 1, 2, ...
    """
    rng = np.random.default_rng(0)
    (region, age), activity = people(rng, 1000), rng.normal(0, 0.8, 1000)
    more = np.argsort(activity + rng.gumbel(size=1000))[-300:]
    owner = np.concatenate([np.arange(1000), more])
    savings = rng.random(1300) < np.repeat([0.1, 0.7], [1000, 300])
    shared = rng.choice(1300, 250, replace=False)
    near = abs(age[owner[shared], None] - age) + 100 * (region[owner[shared], None] != region)
    near[np.arange(250), owner[shared]] = 1000
    owns = {
        "person": 1 + np.concatenate([owner, near.argmin(axis=1)]),
        "account": 1 + np.concatenate([np.arange(1300), shared]),
    }
    paid = transfers(rng, region[owner], age[owner], activity[owner] - 1.5 * savings, 2500)
    payers, payees, amounts, times = zip(*paid, strict=True)

    branch = rng.choice(["food", "travel", "clothing", "health"], 60, p=[0.4, 0.2, 0.2, 0.2])
    place, _ = people(rng, 60)
    middle = np.select(
        [branch == "clothing", branch == "travel", branch == "health"], [30, 40, 70], 46
    )
    liking = activity[:, None] + rng.normal(0, 1, 60) - abs(age[:, None] - middle) / 20
    liking += np.log(6) * (region[:, None] == place)
    chosen = np.argsort((liking + rng.gumbel(size=liking.shape)).ravel())[-3000:]
    visits = np.repeat(chosen, rng.geometric(0.5, 3000))
    spent = rng.lognormal(np.where(branch == "travel", 5.0, 3.3)[visits % 60], 0.6).round(2)
    days = np.datetime64("2026-01-01") + rng.integers(181, size=len(visits))
    bounds = {"amount": "amount", "amount_max": FACTS["weight_max"]}
    bounds |= {"time": "at", "window": FACTS["time_window"]}

    def table(**columns: Any) -> pyarrow.Table:
        return pyarrow.table(columns)

    def ids(size: int) -> Any:
        return np.arange(1, size + 1)

    return {
        "nodes": {
            "person": {
                "table": table(id=ids(1000), age=age, region=region),
                "id": "id",
                "private": {
                    "age": [18, 30, 45, 60, 75, 100],
                    "region": ["north", "south", "east", "west"],
                },
            },
            "account": {
                "table": table(id=ids(1300), type=np.where(savings, "savings", "current")),
                "id": "id",
                "private": {"type": ["current", "savings"]},
            },
            "merchant": {
                "table": table(id=ids(60), branch=branch),
                "id": "id",
                "public": ["branch"],
            },
        },
        "relations": {
            "owns": {
                "table": table(**owns),
                "between": ["person", "account"],
                "keys": ["person", "account"],
            },
            "transfers": {
                "table": table(
                    payer=1 + np.array(payers), payee=1 + np.array(payees), amount=amounts, at=times
                ),
                "between": ["account", "account"],
                "keys": ["payer", "payee"],
                **bounds,
            },
            "buys": {
                "table": table(
                    person=1 + visits // 60, merchant=1 + visits % 60, amount=spent, at=days
                ),
                "between": ["person", "merchant"],
                "keys": ["person", "merchant"],
                **bounds,
            },
        },
    }
