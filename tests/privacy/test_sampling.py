"""Poisson batches are independent draws at the requested rate, shared between ranks."""

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from scipy import stats
from torch.utils.data import DataLoader

from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sampling import PoissonSampler


@pytest.mark.parametrize(("num_records", "sample_rate"), [(50, 0.1), (50, 0.7), (2000, 0.01)])
def test_records_are_drawn_independently_with_the_asked_rate(num_records, sample_rate):
    steps = 4000
    draws = np.zeros((steps, num_records))
    sampler = PoissonSampler(num_records, sample_rate, steps, NoiseSource(unsafe_seed=1))
    for row, indices in zip(draws, sampler, strict=True):
        assert indices.dtype == torch.long
        assert len(indices.unique()) == len(indices)
        row[indices.numpy()] = 1
    sd = np.sqrt(sample_rate * (1 - sample_rate) / steps)
    frequency = draws.mean(0)
    squares = (((frequency - sample_rate) / sd) ** 2).sum()
    assert 1e-3 < stats.chi2.cdf(squares, num_records) < 1 - 1e-3
    assert np.abs(frequency - sample_rate).max() < 5 * sd
    # Sizes vary as a binomial: fixed-size batches or dependent records would show here.
    variance = num_records * sample_rate * (1 - sample_rate)
    assert draws.sum(1).var() == pytest.approx(variance, rel=5 * np.sqrt(2 / steps))


def test_pairs_of_records_are_independent():
    draws = np.zeros((20_000, 5))
    sampler = PoissonSampler(5, 0.3, 20_000, NoiseSource(unsafe_seed=2))
    for row, indices in zip(draws, sampler, strict=True):
        row[indices.numpy()] = 1
    correlation = np.corrcoef(draws.T) - np.eye(5)
    assert np.abs(correlation).max() < 4 / np.sqrt(20_000)


def test_empty_batches_are_yielded_and_counted():
    sampler = PoissonSampler(3, 0.05, 200)
    sizes = [len(indices) for indices in sampler]
    assert len(sizes) == len(sampler) == 200
    assert sizes.count(0) > 100  # expected 171


def test_rate_one_draws_everything():
    assert [batch.tolist() for batch in PoissonSampler(4, 1.0, 2)] == [[0, 1, 2, 3]] * 2


def test_ranks_partition_one_draw():
    whole = PoissonSampler(100, 0.3, 50, NoiseSource(unsafe_seed=3))
    ranks = [PoissonSampler(100, 0.3, 50, NoiseSource(unsafe_seed=3), r, 3) for r in range(3)]
    for batch, *parts in zip(whole, *ranks, strict=True):
        assert torch.cat(parts).sort().values.tolist() == batch.tolist()


def test_draws_are_fresh_in_each_pass_and_ignore_global_seeds():
    passes = []
    for sampler in (PoissonSampler(1000, 0.5, 1), PoissonSampler(1000, 0.5, 1)):
        for _ in range(2):
            pl.seed_everything(0)
            passes.append(tuple(next(iter(sampler)).tolist()))
    assert len(set(passes)) == 4


def test_noise_source_is_made_at_the_first_pass():
    sampler = PoissonSampler(10, 0.5, 1)
    assert sampler.noise is None
    list(sampler)
    assert sampler.noise.is_secret


def test_indexes_a_dataset_once_per_batch():
    records = torch.arange(20).reshape(10, 2)
    loader = DataLoader(
        records, sampler=PoissonSampler(10, 0.5, 5, NoiseSource(unsafe_seed=4)), batch_size=None
    )
    expected = PoissonSampler(10, 0.5, 5, NoiseSource(unsafe_seed=4))
    for batch, indices in zip(loader, expected, strict=True):
        assert torch.equal(batch, records[indices])


def test_batches_of_no_records_are_empty():
    """A refusal would reveal that a graph has lost its last edge."""
    assert [batch.tolist() for batch in PoissonSampler(0, 0.5, 3)] == [[], [], []]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1, 0.5, 1), "num_records"),
        ((5, 0.0, 1), "sample_rate"),
        ((5, 1.5, 1), "sample_rate"),
        ((5, 0.5, 0), "steps"),
        ((5, 0.5, 1, None, 2, 2), "rank"),
    ],
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=name):
        PoissonSampler(*arguments)
