"""Scores of a study that was cut off are continued."""

from benchmarks.scores_file import ScoresFile


def test_a_line_that_was_cut_off_is_dropped_and_measured_again(tmp_path, capsys):
    fields = ("row", "seed", "value")
    ScoresFile(tmp_path, fields).append([["a", 0, 1.25], ["a", 1, 2.5]])
    with (tmp_path / "scores.csv").open("a") as stream:
        stream.write("a,2,3")  # of 3.75
    file = ScoresFile(tmp_path, fields)
    assert [line["seed"] for line in file.lines()] == ["0", "1"]
    file.append([["a", 2, 3.75]])
    assert [line["value"] for line in ScoresFile(tmp_path, fields).lines()] == [
        "1.25",
        "2.5",
        "3.75",
    ]
    file.write_cells([["t", "a", "c", "2.5", "", 3, "0 1 2", ""]])
    assert capsys.readouterr().out == (
        "table,row,column,value,deviation,runs,seeds,note\nt,a,c,2.5,,3,0 1 2,\n\n"
    )
