"""Noise has the requested law, ignores public seeds, and its key is never saved or copied."""

import copy
import math
import os
import pickle
import secrets
from types import SimpleNamespace

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from scipy import stats

from lightning_dpg.privacy import noise
from lightning_dpg.privacy.noise import NoiseSource


@pytest.fixture(autouse=True)
def keys_of_the_operating_system(monkeypatch):
    """Use the secret key of production, which all other tests replace."""
    monkeypatch.setattr(noise, "secrets", secrets)


@pytest.mark.parametrize("std", [0.01, 3.0])
def test_normal_has_the_asked_law(std):
    draws = NoiseSource().normal(200_000, std).numpy()
    assert draws.std() == pytest.approx(std, rel=0.01)
    assert stats.kstest(draws, stats.norm(0, std).cdf).pvalue > 1e-5


def test_noise_ignores_global_seeds():
    draws = []
    for _ in range(2):
        pl.seed_everything(0)
        torch.manual_seed(0)
        np.random.seed(0)
        draws.append(NoiseSource().normal(100, 1.0))
    assert abs(np.corrcoef(draws[0], draws[1])[0, 1]) < 0.6


def test_successive_draws_and_sources_differ():
    one, two = NoiseSource(), NoiseSource()
    draws = torch.stack([one.normal(100, 1.0), one.normal(100, 1.0), two.normal(100, 1.0)])
    correlation = np.corrcoef(draws) - np.eye(3)
    assert np.abs(correlation).max() < 0.6


def test_noise_does_not_touch_global_generators():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    NoiseSource().normal(10, 1.0)
    assert torch.equal(torch.rand(3), expected)


def test_all_ranks_get_the_key_of_rank_zero(monkeypatch):
    key_of_rank_zero = []

    def broadcast(keys, src):
        assert src == 0
        key_of_rank_zero.append(keys[0])
        keys[0] = key_of_rank_zero[0]

    early = NoiseSource()
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 2)
    monkeypatch.setattr("torch.distributed.broadcast_object_list", broadcast)
    ranks = [NoiseSource(), NoiseSource()]
    assert key_of_rank_zero[0] != key_of_rank_zero[1]
    assert torch.equal(ranks[0].normal(9, 1.0), ranks[1].normal(9, 1.0))
    assert all(rank.is_secret and rank.is_shared for rank in ranks)
    assert not early.is_shared  # each process has a key of its own


def test_unsafe_seed_is_marked_and_repeats():
    one, two = NoiseSource(unsafe_seed=7), NoiseSource(unsafe_seed=7)
    assert not one.is_secret
    assert torch.equal(one.normal((2, 3), 1.0), two.normal((2, 3), 1.0))


@pytest.mark.parametrize("save", [pickle.dumps, copy.copy, copy.deepcopy])
def test_key_can_be_neither_saved_nor_copied(save):
    with pytest.raises(TypeError, match="secret"):
        save(NoiseSource())


def test_shape_type_and_bad_std():
    noise = NoiseSource()
    assert noise.normal((2, 0, 3), 1.0, dtype=torch.float64).shape == (2, 0, 3)
    assert noise.normal((), 1.0, dtype=torch.float64).dtype == torch.float64
    assert not noise.normal(5, 0.0).any()
    for std in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="std"):
            noise.normal(3, std)


@pytest.mark.parametrize("high", [1, 2, 6, 256])
def test_integers_are_uniform(high):
    noise = NoiseSource(unsafe_seed=0)
    counts = np.bincount(noise.integers(high, 5000), minlength=high)
    assert len(counts) == high
    assert high == 1 or stats.chisquare(counts).pvalue > 1e-3


def test_integers_up_to_63_bits():
    noise = NoiseSource(unsafe_seed=0)
    high = 3 * 2**60
    draws = noise.integers(high, 2000)
    assert 0 <= draws.min() and draws.max() < high
    assert stats.kstest(draws / high, "uniform").pvalue > 1e-3
    for high in (0, 2**63 + 1):
        with pytest.raises(ValueError, match="high"):
            noise.integers(high, 1)


def test_coins_of_a_range_that_no_memory_holds():
    """Number and places of heads among 2**37 coins, drawn in 8,192 parts."""
    n, p = 2**37, 2e-8
    heads = NoiseSource(unsafe_seed=1).bernoulli(n, p)
    assert abs(len(heads) - n * p) < 4 * (n * p) ** 0.5
    assert bool((heads.diff() > 0).all())
    assert stats.kstest(heads.numpy() / n, "uniform").pvalue > 1e-3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_cannot_repeat_the_noise_of_its_parent():
    source = NoiseSource()
    source.normal(1, 1.0)
    child = os.fork()
    if child == 0:  # no exception may leave the child, which would run the rest of the tests
        try:
            source.normal(1, 1.0)
            os._exit(0)
        except ValueError as error:
            os._exit(7 if "forked" in str(error) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert source.normal(3, 1.0).any()


def test_coins_of_records_take_their_whole_state_from_the_operating_system(monkeypatch):
    """The same state in NumPy's generator; 32 bits of it do not give the same coins."""
    key = secrets.randbits(32 * 624)
    monkeypatch.setattr(noise, "secrets", SimpleNamespace(randbits=lambda bits: key % 2**bits))
    generator = noise.secret_generator()
    twister = np.random.MT19937()
    words = np.frombuffer(key.to_bytes(4 * 624, "little"), dtype="<u4")
    twister.state = {"bit_generator": "MT19937", "state": {"key": words, "pos": 624}}
    expected = (twister.random_raw(2000) & 0xFFFFFF) / 2**24
    assert np.array_equal(torch.rand(2000, generator=generator).double().numpy(), expected)
    replayed = torch.Generator().manual_seed(generator.initial_seed() % 2**32)
    assert not np.array_equal(torch.rand(2000, generator=replayed).double().numpy(), expected)


def test_coins_of_records_ignore_global_seeds_and_differ_at_each_use():
    draws = []
    for _ in range(2):
        pl.seed_everything(0)
        draws.append(torch.randn(100, generator=noise.secret_generator()))
    assert abs(np.corrcoef(draws[0], draws[1])[0, 1]) < 0.6
