"""Fits of Python with a trainer of the caller: what it lacks is added or refused."""

import json
from fractions import Fraction

import numpy as np
import pytest
from pytorch_lightning.loggers.logger import DummyLogger

import lightning_dpg as dpg
from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.methods import BTER, ChungLu
from tests.training import quiet_trainer


def test_an_own_trainer_gets_what_it_lacks_and_keeps_its_callbacks(tmp_path):
    trainer = quiet_trainer(default_root_dir=tmp_path)
    before = [*trainer.callbacks]
    release = dpg.fit("karate", "chung_lu", epsilon=1.0, trainer=trainer)
    assert release.folder == tmp_path / "release"
    assert json.loads((tmp_path / "release" / "privacy.json").read_text())["epsilon"] == 1.0
    assert trainer.callbacks == before
    with pytest.raises(dpg.CommandError, match="made a run already"):
        dpg.fit("karate", "chung_lu", epsilon=1.0, trainer=trainer)


@pytest.mark.parametrize(
    ("options", "why"),
    [({"fast_dev_run": True}, "fast_dev_run writes no release"), ({"max_epochs": 0}, "no step")],
)
def test_a_trainer_that_cannot_release_is_refused_before_it_reads(options, why, tmp_path):
    earlier = dpg.fit("davis", "chung_lu", epsilon=9.0).save(tmp_path / "release")
    files = {path: path.read_bytes() for path in earlier.iterdir()}
    method = ChungLu(num_nodes=34)
    trainer = quiet_trainer(default_root_dir=tmp_path, **options)
    with pytest.raises(dpg.CommandError, match=why):
        dpg.fit("karate", method, epsilon=1.0, trainer=trainer)
    assert not method.ledger.entries
    assert {path: path.read_bytes() for path in earlier.iterdir()} == files


def test_a_logger_without_a_folder_is_refused_before_anything_is_spent(tmp_path):
    class Remote(DummyLogger):
        """Logger with a server, and without a folder."""

    method = ChungLu(num_nodes=34)
    trainer = quiet_trainer(logger=Remote(), default_root_dir=tmp_path)
    with pytest.raises(dpg.CommandError, match="Remote has no folder"):
        dpg.fit("karate", method, epsilon=1.0, trainer=trainer)
    assert not method.ledger.entries


def test_a_release_whose_files_were_replaced_is_not_saved(tmp_path):
    first, _ = (
        dpg.fit("karate", "chung_lu", epsilon=1.0, trainer=quiet_trainer(default_root_dir=tmp_path))
        for _ in range(2)
    )
    with pytest.raises(dpg.CommandError, match="replaced since it was opened"):
        first.save(tmp_path / "first")
    assert not (tmp_path / "first").exists()


def test_callbacks_of_a_derived_class_are_not_doubled(tmp_path):
    class Writer(ReleaseWriter):
        """Writer of a user."""

    class Accountant(PrivacyAccountant):
        """Accountant of a user."""

    own = [Accountant(1.0, 0.001), Writer(num_graphs=2, formats=["npz"])]
    trainer = quiet_trainer(*own, default_root_dir=tmp_path)
    with pytest.raises(dpg.CommandError, match="give it to the ReleaseWriter"):
        dpg.fit("karate", "chung_lu", epsilon=1.0, trainer=trainer, card={"operator": "x"})
    release = dpg.fit("karate", "chung_lu", epsilon=1.0, trainer=trainer)
    assert sorted(path.name for path in release.folder.glob("synthetic*")) == [
        "synthetic-0.npz",
        "synthetic-1.npz",
    ]
    # The budget of a baseline that an attack fits again.
    assert release.configuration["privacy"]["delta"] == 0.001


def test_a_file_of_the_same_name_is_not_the_configuration(tmp_path):
    (tmp_path / "config.yaml").write_text("private notes")
    trainer = quiet_trainer(default_root_dir=tmp_path)
    release = dpg.fit("karate", "chung_lu", epsilon=1.0, trainer=trainer)
    assert release.statement["administrative"]["configuration_sha256"] is None


def test_a_trainer_with_another_budget_is_refused(tmp_path):
    trainer = quiet_trainer(PrivacyAccountant(2.0, 0.0), default_root_dir=tmp_path)
    with pytest.raises(dpg.CommandError, match=r"epsilon 2 .*asked for epsilon 1"):
        dpg.fit("karate", "chung_lu", epsilon=1.0, trainer=trainer)
    assert not list(tmp_path.iterdir())
    assert dpg.fit("karate", "chung_lu", epsilon=2.0, trainer=trainer).statement["epsilon"] == 2


def test_the_end_of_the_budget_is_a_warning(tmp_path):
    trainer = quiet_trainer(max_epochs=5000, default_root_dir=tmp_path)
    small = {"batch_size": 8, "generator_dim": 8, "critic_dim": 8, "num_samples": 50}
    noise = {"noise_multiplier": 3.0, "sample_rate": 0.5}
    with pytest.warns(UserWarning, match="affords no more"):
        release = dpg.fit(
            "karate", "dp_netgan", epsilon=4.0, delta=1e-4, trainer=trainer, **small, **noise
        )
    assert release.statement["epsilon"] <= 4.0


def test_a_setting_that_no_release_can_hold_is_refused_before_it_costs(tmp_path):
    trainer = quiet_trainer(default_root_dir=tmp_path)
    method = BTER(34, Fraction(1, 5))
    with pytest.raises(dpg.CommandError, match="BTER: count_share is no plain value"):
        dpg.fit("karate", method, epsilon=1.0, trainer=trainer)
    assert not method.ledger.entries and not list(tmp_path.iterdir())
    given = dpg.fit("karate", BTER(34, np.float64(0.2)), epsilon=1.0, out=tmp_path / "out")
    assert given.method.hparams["count_share"] == 0.2
