"""Each deep method in two processes: curves in Weights & Biases, a resumed run, epsilon by opacus."""

import pytest

from benchmarks.tracked_runs import RUNS, first_run, read_run, resumed_run, write_few_graphs
from results.tables import FOLDER, read_study
from tests.processes import ends, start_two_commands


@pytest.mark.parametrize("name", RUNS)
def test_two_processes_track_their_curves_and_resume(name, tmp_path):
    write_few_graphs(tmp_path)
    for options in (first_run, lambda name: resumed_run(name, tmp_path)):
        codes, outs = ends(start_two_commands(tmp_path, *options(name)))
        assert codes == [0, 0], outs
    first, second = (read_run(tmp_path, name, end) for end in ("first", "second"))
    study = read_study(FOLDER / "tracking")
    method = second.statement["method"]
    labels = study.tables["curves"].rows
    rows = [row for row, column in study.table_cells("curves") if column == method]
    assert {labels[row] for row in rows} == {*first.points, *second.points}
    is_trained = name not in ("privcom", "ldp_gw")  # these release once, and not again
    assert second.statement["steps"] == first.statement["steps"] * (1 + is_trained)
    opinion = second.statement["accounting"]["second_opinion"]
    assert opinion["prv"][0] <= second.statement["epsilon"] <= opinion["rdp"] * 1.0001
