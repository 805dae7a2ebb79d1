"""Private methods with planted mistakes in their noise, and their audits."""

import contextlib
import math
import pkgutil
from collections import Counter
from dataclasses import replace
from importlib import import_module

import torch

from lightning_dpg import methods, papers
from lightning_dpg.apps.audit.audited_fit import WhiteBoxAttacker, pooled
from lightning_dpg.apps.audit.audits import bounded
from lightning_dpg.apps.audit.canaries import find_sites, spread_non_edges
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.interfaces import AttributedGraphRecords
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.methods.single_graph import attribute_encoder
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.privacy import dpsgd
from lightning_dpg.privacy import pay as paying
from lightning_dpg.privacy.events import Gaussian, Pure
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.noise import NoiseSource
from tests.training import quiet_trainer, release_edges

# Reports have an epsilon, however large, where all other noise can be left out.
_OF_REPORTS = 1e6
_LAWS = (
    *("noise_of", "integer_noise", "choose_in_turns", "choose_by_chain", "randomized_response"),
    *("multi_bit", "piecewise"),
)


class Enough(Exception):
    """All audited values were released; what a method computes from them is not private."""


def plant(monkeypatch, factor, keys=None):
    """Multiply the noise of some reads, or of all, while the ledger books what was planned."""

    def noisier(read, is_report):
        """The read whose noise is drawn, in place of the one that is paid."""
        if isinstance(read.event, Gaussian):
            return replace(read, event=Gaussian(read.event.noise_multiplier * factor))
        # Reports have no law without noise.
        most = _OF_REPORTS * read.event.epsilon if is_report else math.inf
        return replace(read, event=Pure(read.event.epsilon / factor if factor else most))

    def planted(name, law):
        def build(read, *args, **settings):
            if keys is not None and read.key not in keys:
                return law(read, *args, **settings)
            own = settings.get("epsilon")  # of a sample, or of each client
            if own is not None:
                settings["epsilon"] = own / factor if factor else own * _OF_REPORTS
            return law(noisier(read, name in ("multi_bit", "piecewise")), *args, **settings)

        return build

    found = [
        each.name
        for package in (methods, papers)
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for module in (paying, *map(import_module, found)):
        for name in _LAWS:
            # The law of a plain read is built in the module of `pay`, and planted there once.
            if hasattr(module, name) and not (module is paying and name == "integer_noise"):
                monkeypatch.setattr(module, name, planted(name, getattr(module, name)))


def plant_in_steps(monkeypatch, factor):
    """Multiply the noise of the steps of DP-SGD, while the ledger says that nothing changed."""
    init = dpsgd.DPSGD.__init__

    def less(self, noise_multiplier, max_grad_norm):
        init(self, noise_multiplier * factor, max_grad_norm)

    monkeypatch.setattr(dpsgd.DPSGD, "__init__", less)


def plant_no_clipping(monkeypatch):
    """Leave gradients as long as they are, past the trial that sees it before a run books a step."""
    monkeypatch.setattr(PrivateTraining, "dry_run", lambda *_: None)
    for module in (dpsgd, dpsgd, attribute_encoder):
        monkeypatch.setattr(module, "clip_factor", lambda squared, norm: torch.ones_like(squared))


def audited(
    make, read, budget, canaries, fits, epochs=1, keys=None, confidence=0.95, is_for_a_bug=False
):
    """Audit of a method in the view ``white_box``, without the command line, which takes longer.

    Args:
        make: From a number of nodes to a method.
        read: Makes a data module.
        budget: Epsilon and delta.
        canaries: Pairs that are canaries of each fit, how many random ones there are, or a function
            that plants stars in a data module.
        fits: Number of fits.
        epochs: Epochs of each fit.
        keys: Releases after which each fit ends; by default all of a method that makes them at once.
        confidence: Probability with which all bounds hold.
        is_for_a_bug: Whether it ends after a third or two thirds of the fits if these refute the claim.
    """
    # Early looks are nearly sure: beside the last one, they are wrong in one of a thousand audits each.
    looks = {fits // 3: 0.999, 2 * fits // 3: 0.999} if is_for_a_bug else {}
    looks[fits] = confidence
    outcomes = []
    for seed in range(fits):
        outcomes.append(outcome_of(make, read(), budget, canaries, epochs, seed, keys))
        if len(outcomes) in looks:
            sure = looks[len(outcomes)]
            audit = bounded(pooled(outcomes), "white_box", len(outcomes), sure)
            if audit.refuting:
                break
    return audit


def outcome_of(make, data, budget, canaries, epochs, seed, keys=None):
    data.setup("fit")
    pairs = canaries(data) if callable(canaries) else canaries
    sites = find_sites(data)
    known = sites.known_graph
    if isinstance(canaries, int):
        pairs = spread_non_edges(sites, canaries, torch.Generator().manual_seed(seed))
    pairs = torch.as_tensor(pairs)
    inserted = torch.from_numpy(NoiseSource().integers(2, len(pairs)) == 1)
    sites.insert(pairs[inserted].view(-1, 2))
    method = make(known.num_nodes)
    method.ledger.budget = Budget(*budget)
    attacker = WhiteBoxAttacker(method, data, pairs, known)
    is_one_shot = isinstance(method, OneShotSynthesizer)
    awaited = Counter()
    if is_one_shot or isinstance(method, NodeClassifier) or keys:
        steps = {read.key: read.steps for read in method.plan(method.budget, 1)}
        awaited.update({key: steps[key] for key in keys or steps if key in steps})

    def observe(key, noisy):
        attacker(key, noisy)
        awaited[key] -= 1
        if max(awaited.values()) == 0:
            raise Enough

    if awaited:
        method.ledger.observer = observe
    with contextlib.suppress(Enough):
        # Rows of attributes are computed at the start of a fit.
        if is_one_shot and method.capabilities.reads is not AttributedGraphRecords:
            release_edges(method, data.edges)
        else:
            quiet_trainer(PrivacyAccountant(*budget), max_epochs=epochs).fit(method, data)
    return attacker.outcome(inserted, budget[1], method.ledger.epsilon(budget[1]))
