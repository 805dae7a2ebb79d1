"""No recorded result is incomplete."""

import pytest

from lightning_dpg.apps.bench.jobs import Job, write_result

JOB = Job("chung_lu (baseline)", "baseline", "karate", 1.0, 0, {}, "0123456789ab")


def test_a_result_that_is_no_json_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_result(tmp_path, JOB.name, {"error": float("nan")})
    assert not list((tmp_path / "cells").iterdir())
