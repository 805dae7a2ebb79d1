"""Methods by the names and settings that 0.1 had for them."""

import pytest

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
    ],
)
def test_a_release_of_the_earlier_version_gets_the_class_of_its_guarantee(
    earlier, settings, today, gone
):
    name, kept, (line,) = translate(earlier, settings)
    assert name == today
    assert kept == {key: value for key, value in settings.items() if key not in gone.split()}
    assert today in line


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
