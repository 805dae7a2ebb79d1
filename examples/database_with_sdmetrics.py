"""Scores of SDMetrics for a synthetic database, beside those of tables whose keys are drawn at random.

Run it where SDMetrics is installed (tried with 0.32): ``pip install sdmetrics``, then
``python -m examples.database_with_sdmetrics``. It reads the real tables, so its scores are not private.
"""

import argparse
import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sdmetrics.reports.multi_table import QualityReport

import lightning_dpg as dpg
from lightning_dpg.datamodules.small_database import small_database


def real_tables(schema: dict[str, Any]) -> dict[str, pd.DataFrame]:
    """Return the tables of a schema; numbers of private columns are in the bins of the release."""
    parts = {**schema["nodes"], **schema["relations"]}
    tables = {name: of["table"].to_pandas() for name, of in parts.items()}
    for name, of in schema["nodes"].items():
        for column, values in of["private"].items():
            if not isinstance(values[0], str):
                labels = [f"{low} to {high}" for low, high in itertools.pairwise(values)]
                cut = pd.cut(tables[name][column], values, right=False, labels=labels)
                tables[name][column] = cut.astype(str)
    return tables


def metadata_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Describe the tables as SDMetrics reads them: private columns, amounts, times and keys."""
    tables, links = {}, []
    for name, of in schema["nodes"].items():
        columns = {of["id"]: {"sdtype": "id"}} | {
            each: {"sdtype": "categorical"} for each in of["private"]
        }
        tables[name] = {"primary_key": of["id"], "columns": columns}
    for name, of in schema["relations"].items():
        kinds = {"amount": "numerical", "time": "datetime"}
        values = {of[key]: {"sdtype": kind} for key, kind in kinds.items() if key in of}
        tables[name] = {"columns": {key: {"sdtype": "id"} for key in of["keys"]} | values}
        links += [
            {
                "parent_table_name": node,
                "parent_primary_key": schema["nodes"][node]["id"],
                "child_table_name": name,
                "child_foreign_key": key,
            }
            for node, key in zip(of["between"], of["keys"], strict=True)
        ]
    return {"tables": tables, "relationships": links}


def scores(
    real: dict[str, pd.DataFrame], drawn: dict[str, pd.DataFrame], metadata: dict[str, Any]
) -> dict[str, float]:
    """Return the score of each property of the report of SDMetrics: 1 is best."""
    both = []
    for tables in (real, drawn):
        chosen = {}
        for name, of in metadata["tables"].items():
            table = tables[name][[*of["columns"]]].copy()
            for column, kind in of["columns"].items():
                if kind["sdtype"] == "id":
                    table[column] = table[column].astype(int)
                if kind["sdtype"] == "datetime":
                    table[column] = pd.to_datetime(table[column])
            chosen[name] = table
        both.append(chosen)
    report = QualityReport()
    # By default it leaves out pairs of columns that hardly depend on each other, which are all here.
    report.real_correlation_threshold = report.real_association_threshold = 0.0
    report.generate(*both, metadata, verbose=False)
    return dict(report.get_properties().set_index("Property")["Score"])


def main() -> None:
    """Print the scores of a release, and those of the real tables with keys drawn at random."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    epsilon = parser.parse_args().epsilon
    schema = small_database()
    real, metadata = real_tables(schema), metadata_of(schema)
    with tempfile.TemporaryDirectory() as folder:
        release = dpg.fit_database(
            "small_database", epsilon=epsilon, row_epsilon=epsilon, out=Path(folder) / "run"
        )
        drawn = release.tables(seed=1)
    rng, shuffled = np.random.default_rng(0), dict(real)
    for name, of in schema["relations"].items():
        sizes = [len(real[node]) for node in of["between"]]
        keys = {
            key: rng.integers(1, 1 + size, len(real[name]))
            for key, size in zip(of["keys"], sizes, strict=True)
        }
        shuffled[name] = real[name].assign(**keys)
    rows = {
        "release": scores(real, drawn, metadata),
        "keys at random": scores(real, shuffled, metadata),
    }
    print(pd.DataFrame(rows).round(3).to_string())


if __name__ == "__main__":
    main()
