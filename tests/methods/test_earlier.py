"""Methods work by the names and settings of version 0.1."""

import pytest

from lightning_dpg import methods
from lightning_dpg.methods.earlier import translate

# All settings that 0.1 wrote into a release of PrivCom, with its defaults.
PRIVCOM = {
    "num_nodes": 34,
    "release": "noisy_oja",
    "relation": "edge",
    "mode": "corrected",
    "rank": 4,
    "iterations": 24,
    "momentum": 0.85,
    "clip": 0.5,
    "degree_share": 0.2,
    "value_share": 0.02,
    "hops": 0,
    "max_degree": None,
}
HRG = {"num_nodes": 34, "noise": "laplace", "steps_per_node": None, "count_share": 0.05}
DK2 = {"num_nodes": 34, "noise": "weighted", "degree_share": 0.25, "bound_share": 0.05}
GAN = {
    "num_nodes": 34,
    "mode": "corrected",
    "noise_multiplier": "auto",
    "count_epsilon": 0.05,
    "degree_share": 0.0,
    "batch_size": 256,
}
VAE = {
    "mode": "corrected",
    "noise_multiplier": 5.0,
    "clip_decay": 0.99,
    "count_share": 0.3,
    "aggregation_share": 0.3,
    "hops": 1,
    "public_pairs": 4096,
    "latent_dim": 4,
}
VAE_SHARES = "mode count_share aggregation_share hops public_pairs"


@pytest.mark.parametrize(
    ("earlier", "settings", "today", "gone"),
    [
        ("PrivCom", PRIVCOM, "PrivCom", "release relation mode hops max_degree"),
        (
            "PrivCom",
            PRIVCOM | {"relation": "node", "max_degree": 20, "hops": 1},
            "NodePrivCom",
            "release relation mode",
        ),
        (
            "PrivCom",
            PRIVCOM | {"max_degree": 20, "hops": 1},
            "KatzPrivCom",
            "release relation mode",
        ),
        (
            "PrivCom",
            PRIVCOM | {"mode": "paper"},
            "PrivComAsPublished",
            "release relation mode momentum clip degree_share value_share max_degree",
        ),
        (
            "PrivCom",
            PRIVCOM | {"release": "rr_spectral"},
            "RandomizedResponsePrivCom",
            "release relation mode hops max_degree iterations momentum clip value_share",
        ),
        ("HRG", HRG, "HRG", "noise"),
        ("HRG", HRG | {"noise": "gaussian"}, "GaussianHRG", "noise"),
        ("DK2", DK2, "DK2", "noise bound_share"),
        ("DK2", DK2 | {"noise": "uniform"}, "UniformDK2", "noise"),
        ("DPNetGAN", GAN, "DPNetGAN", "mode"),
        (
            "DPNetGAN",
            GAN | {"mode": "paper"},
            "DPNetGANAsPublished",
            "mode count_epsilon degree_share",
        ),
        ("DPGVAE", VAE, "DPGVAE", "mode clip_decay"),
        ("DPGVAE", VAE | {"mode": "paper"}, "DPGVAEAsPublished", VAE_SHARES),
        ("DPGGAN", VAE | {"mode": "paper"}, "DPGGANAsPublished", VAE_SHARES),
    ],
)
def test_a_release_of_the_earlier_version_gets_the_class_of_its_guarantee(
    earlier, settings, today, gone
):
    name, kept, (line,) = translate(earlier, settings)
    assert name == today
    assert kept == {key: value for key, value in settings.items() if key not in gone.split()}
    assert today in line


@pytest.mark.parametrize("settings", [GAN, VAE, GAN | {"mode": "paper"}, VAE | {"mode": "paper"}])
def test_the_class_of_today_takes_what_is_kept(settings):
    names = ["DPNetGAN"] if settings.keys() == GAN.keys() else ["DPGVAE", "DPGGAN"]
    for name in names:
        today, kept, _ = translate(name, settings)
        assert getattr(methods, today)(**kept).hparams.items() >= kept.items()


def test_some_settings_are_enough():
    name, kept, lines = translate("PrivCom", {"release": "rr_spectral", "rank": 2})
    assert (name, kept) == ("RandomizedResponsePrivCom", {"rank": 2})
    (line,) = lines
    assert line == (
        "PrivCom with release: rr_spectral is now called RandomizedResponsePrivCom, which has no "
        "such settings; the earlier words work in this version only"
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("PrivCom", {"rank": 2}),
        ("BTER", {"noise": "gaussian"}),
        ("HRG", {"noise": "cauchy"}),  # refused by 0.1, too
        ("HRG", {"noise": ["gaussian"]}),
        ("PrivCom", {"release": "rr_spectral", "relation": "node"}),
        ("PrivCom", {"release": "rr_spectral", "hops": 1}),
        ("PrivCom", {"ranks": 2}),
    ],
)
def test_everything_else_stays_as_it_is(name, settings):
    assert translate(name, settings) == (name, settings, [])
