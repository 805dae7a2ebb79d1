"""A small generated database: persons, accounts and merchants, who owns, pays and buys (public)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow

from lightning_dpg.datamodules.small_bank import FACTS, people, transfers


def small_database() -> dict[str, Any]:
    """Draw 1,000 persons, 1,300 accounts and 60 merchants, and their relations of half a year.

    Active persons have more accounts, which pay more, and buy more; savings accounts pay little. 250
    accounts have a second owner of the same region and nearly the same age. Transfers are those of
    :func:`small_bank`, by age and region of the first owner. Persons buy in their region, and each
    branch has an age of its own.

    Returns:
        The content of a schema with its tables. The ids of each table are 1, 2, ...
    """
    rng = np.random.default_rng(0)
    (region, age), activity = people(rng, 1000), rng.normal(0, 0.8, 1000)
    owner = np.r_[:1000, np.argsort(activity + rng.gumbel(size=1000))[-300:]]
    is_saved = rng.random(1300) < np.repeat([0.1, 0.7], [1000, 300])
    shared = rng.choice(1300, 250, replace=False)
    first = owner[shared]
    apart = abs(age[first, None] - age) + 100.0 * (region[first, None] != region)
    apart[np.arange(250), first] = np.inf
    paid = transfers(rng, region[owner], age[owner], activity[owner] - 1.5 * is_saved, 2500)
    payer, payee, amount, at = zip(*paid, strict=True)
    branch = rng.choice(["food", "travel", "clothing", "health"], 60, p=[0.4, 0.2, 0.2, 0.2])
    usual = {"food": 46, "travel": 40, "clothing": 30, "health": 70}
    liking = np.log(6) * (region[:, None] == people(rng, 60)[0]) + activity[:, None]
    liking += rng.normal(0, 1, 60) - abs(age[:, None] - [usual[each] for each in branch]) / 20
    chosen = np.argsort((liking + rng.gumbel(size=liking.shape)).ravel())[-3000:]
    buyer, shop = np.divmod(np.repeat(chosen, rng.geometric(0.5, 3000)), 60)
    spent = rng.lognormal(np.where(branch == "travel", 5.0, 3.3)[shop], 0.6).round(2)
    days = np.datetime64("2026-01-01") + rng.integers(181, size=len(shop))

    def nodes(size: int, private: dict[str, Any], **columns: Any) -> dict[str, Any]:
        table = pyarrow.table({"id": np.arange(1, size + 1), **columns})
        public = [name for name in columns if name not in private]
        return {"table": table, "id": "id", "private": private, "public": public}

    def relations(between: Sequence[str], keys: Sequence[str], *ends: Any, **values: Any) -> Any:
        numbers = {key: 1 + np.array(end) for key, end in zip(keys, ends, strict=True)}
        bounds = {"amount_max": FACTS["weight_max"], "window": FACTS["time_window"]}
        facts = {"amount": "amount", "time": "at", **bounds} if values else {}
        table = pyarrow.table({**numbers, **values})
        return {"table": table, "between": [*between], "keys": [*keys], **facts}

    ages, regions = [18, 30, 45, 60, 75, 100], ["north", "south", "east", "west"]
    account = np.where(is_saved, "savings", "current")
    owns, buys = ("person", "account"), ("person", "merchant")
    second = np.r_[:1300, shared]
    return {
        "nodes": {
            "person": nodes(1000, {"age": ages, "region": regions}, age=age, region=region),
            "account": nodes(1300, {"type": ["current", "savings"]}, type=account),
            "merchant": nodes(60, {}, branch=branch),
        },
        "relations": {
            "owns": relations(owns, owns, np.r_[owner, apart.argmin(axis=1)], second),
            "transfers": relations(
                ("account", "account"), ("payer", "payee"), payer, payee, amount=amount, at=at
            ),
            "buys": relations(buys, buys, buyer, shop, amount=spent, at=days),
        },
    }
