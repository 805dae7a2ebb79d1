"""Recorded results of earlier versions are readable, and no record is incomplete."""

import json

import pytest

from lightning_dpg.benchmark.jobs import Job, read_result, write_result
from tests.recorded import result

JOB = Job("chung_lu (baseline)", "baseline", "karate", 1.0, 0, {}, "0123456789ab")


def test_results_of_version_0_1_are_read_under_their_new_words(tmp_path):
    old = result("chung_lu (control)") | {"kind": "control", "name": "old", "triangles": 0.5}
    del old["role"]
    (tmp_path / "cells").mkdir()
    path = tmp_path / "cells" / "chung_lu_control-karate-eps1-run0-0123456789ab.json"
    path.write_text(json.dumps(old))
    found = read_result(tmp_path, JOB)
    assert (found["method"], found["role"]) == (JOB.method, "baseline")
    assert "kind" not in found
    assert found["name"] == "old"  # its graphs lie in a folder of this name
    assert found["answers"] == old["answers"]
    assert read_result(tmp_path, JOB._replace(run=1)) is None


def test_a_result_that_is_no_json_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_result(tmp_path, JOB.name, {"error": float("nan")})
    assert not list((tmp_path / "cells").iterdir())
