"""Private methods with planted mistakes in their noise, and their audits."""

import math
import pkgutil
from dataclasses import replace
from importlib import import_module

import torch

import lightning_dpg.methods
from lightning_dpg.auditing.audited_fit import WhiteBoxAttacker, pooled
from lightning_dpg.auditing.audits import bounded
from lightning_dpg.auditing.canaries import find_sites, spread_non_edges
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.interfaces import AttributedGraphRecords
from lightning_dpg.methods.single_graph.attribute_encoder import clipping
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.privacy import aggregation_perturbation as aggregation
from lightning_dpg.privacy import dpsgd, ghost
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.noise import NoiseSource
from tests.training import quiet_trainer

# What each mechanism takes for its noise, and by which factor more of it means less noise.
_MECHANISMS = {
    "discrete_laplace": "epsilon",
    "choose_in_turns": "epsilon",
    "choose_by_chain": "epsilon",
    "randomized_response": "epsilon",
    "multi_bit": "epsilon",
    "piecewise": "epsilon",
    "gaussian": "noise_multiplier",
}


class Lying:
    """A ledger that books what a release claims, and not what it has cost."""

    def __init__(self, ledger, **claim):
        self._ledger, self._claim = ledger, claim

    def __getattr__(self, name):
        return getattr(self._ledger, name)

    def spend(self, entry):
        self._ledger.spend(replace(entry, **self._claim))


def plant(monkeypatch, factor, keys=None):
    """Multiply the noise of some releases, or of all, while the ledger says that nothing changed."""

    def planted(mechanism, setting):
        def noisy(*args, **settings):
            value = settings[setting]
            if keys is not None and settings["key"] not in keys:
                return mechanism(*args, **settings)
            if setting == "epsilon":
                # Reports have no law without noise.
                is_report = isinstance(value, torch.Tensor) or mechanism.__name__ == "piecewise"
                most = 1e6 * value if is_report else math.inf
                less = value / factor if factor else most
                claim = settings.get("cost") or float(
                    torch.as_tensor(value, dtype=torch.double).max()
                )
            else:
                less, claim = value * factor, value
            place = next(k for k, arg in enumerate(args) if hasattr(arg, "spend"))
            args = (*args[:place], Lying(args[place], **{setting: claim}), *args[place + 1 :])
            settings.pop("cost", None)
            return mechanism(*args, **{**settings, setting: less})

        return noisy

    names_of = pkgutil.walk_packages(lightning_dpg.methods.__path__, "lightning_dpg.methods.")
    for module in (aggregation, *(import_module(found.name) for found in names_of)):
        for name, setting in _MECHANISMS.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, planted(getattr(module, name), setting))


def plant_in_steps(monkeypatch, factor):
    """Multiply the noise of the steps of DP-SGD, while the ledger says that nothing changed."""
    init = dpsgd.DPSGD.__init__

    def less(self, noise_multiplier, max_grad_norm):
        init(self, noise_multiplier * factor, max_grad_norm)

    monkeypatch.setattr(dpsgd.DPSGD, "__init__", less)


def plant_no_clipping(monkeypatch):
    """Leave gradients as long as they are."""
    for module in (dpsgd, ghost, clipping):
        monkeypatch.setattr(module, "clip_factor", lambda squared, norm: torch.ones_like(squared))


def audited(make, read, budget, canaries, fits, epochs=1):
    """Audit of a method in the view ``white_box``, without the command line, which takes longer.

    Args:
        make: From a number of nodes to a method.
        read: Makes a data module.
        budget: Epsilon and delta.
        canaries: Pairs that are canaries of each fit, or how many random ones there are.
        fits: Number of fits.
        epochs: Epochs of each fit.
    """
    outcomes = [outcome_of(make, read(), budget, canaries, epochs, seed) for seed in range(fits)]
    return bounded(pooled(outcomes), "white_box", fits, 0.95)


def outcome_of(make, data, budget, canaries, epochs, seed):
    data.setup("fit")
    sites = find_sites(data)
    known, pairs = sites.known, canaries
    if isinstance(canaries, int):
        pairs = spread_non_edges(sites, canaries, torch.Generator().manual_seed(seed))
    pairs = torch.as_tensor(pairs)
    inserted = torch.from_numpy(NoiseSource().integers(2, len(pairs)) == 1)
    sites.insert(pairs[inserted])
    method = make(known.num_nodes)
    method.ledger.budget = Budget(*budget)
    attacker = WhiteBoxAttacker(method, data, pairs, known)
    is_one_shot = type(method).training_step is OneShotSynthesizer.training_step
    # Rows of attributes are computed at the start of a fit.
    if is_one_shot and method.reads is not AttributedGraphRecords:
        method.release(data.edges, budget[0])
    else:
        quiet_trainer(PrivacyAccountant(*budget), max_epochs=epochs).fit(method, data)
    return attacker.outcome(inserted, budget[1], method.ledger.epsilon(budget[1]))
