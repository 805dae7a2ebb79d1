"""Base class of all methods: each owns a ledger, and plans what it spends."""

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import Any, ClassVar, TypeVar

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.errors import Refusal
from lightning_dpg.interfaces import BatchRequest, GraphRecords, Records
from lightning_dpg.methods.constraints import Constraints, constraints_of
from lightning_dpg.methods.planning import Budgets, check_plan, check_same_steps, prove_steps
from lightning_dpg.metrics.curves import mean_curves
from lightning_dpg.nn.paid_weights import is_marked, mark, watch
from lightning_dpg.nn.resized_buffers import before_loading
from lightning_dpg.preflight.data import check_accountant, check_data, served_records
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.dpsgd import accumulate
from lightning_dpg.privacy.events import LedgerEntry, NonPrivate, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay

V = TypeVar("V")
LEDGER = "_extra_state"
"""Name of the ledger in a state dict, which is PyTorch's for what is no parameter and no buffer."""


class PrivateModule(pl.LightningModule):
    """A method with a ledger of all its reads of the private graph.

    A state dict holds the ledger beside the weights, so that weights that were paid for keep their
    price wherever they are loaded. Weights that are loaded without a ledger void the guarantee.

    Attributes:
        ledger: Releases so far; part of every state dict.
        relation: Neighboring relation of the guarantee.
        is_pure: Whether all releases satisfy pure epsilon-DP; a delta of 0 then suffices.
        adds_noise: Whether the method protects anything.
        is_trained: Whether training changes the released tensors; if so, a run of zero steps
            releases an untrained model.
        assumptions: Facts that the guarantee treats as public, phrases to follow "Assumed public:".
        reads: Protocol of the records: ``GraphRecords``, ``AttributedGraphRecords`` or
            ``GraphSetRecords``.
        repeats_edges: Whether the method multiplies its sensitivities by ``max_occurrences`` of a
            set; otherwise data with repeated edges are refused.
        is_inductive: Whether ``predict`` reads graphs, whose labels the method predicts.
        kinds: Kinds of graphs that the method learns: undirected, directed, bipartite.
        learns_private_labels: Whether the method protects private labels of nodes; others refuse
            data that have them.
        learns_private_columns: Whether the method protects private columns of nodes; others refuse
            data that have them.
        learns_transfers: Whether the method protects amounts and times of transfers; others refuse
            data that have them.
        curve_names: Names of the curves of training, for :meth:`log_curve`, and of other figures
            that it logs. Those without the prefix ``nonprivate/`` are public: they read released
            tensors or public facts only. What is logged under other names gets the prefix.
        constraints: Constraints of single settings, beside those of the base classes. The choices
            of an argument that is a ``Literal`` need no constraint.
    """

    reads: ClassVar[type] = GraphRecords
    kinds: ClassVar[frozenset[str]] = frozenset({"undirected"})
    repeats_edges: ClassVar[bool] = False
    is_inductive: ClassVar[bool] = False
    learns_private_labels: ClassVar[bool] = False
    learns_private_columns: ClassVar[bool] = False
    learns_transfers: ClassVar[bool] = False
    relation: Relation = Relation.EDGE
    is_pure: ClassVar[bool] = False
    adds_noise: ClassVar[bool] = True
    is_trained: ClassVar[bool] = True
    curve_names: ClassVar[tuple[str, ...]] = ()
    constraints: ClassVar[Constraints] = {}

    def __init__(self) -> None:
        super().__init__()
        self.curves = mean_curves(self.curve_names)
        self.automatic_optimization = False
        self.ledger = PrivacyLedger(self.relation)
        self.assumptions: list[str] = []
        self._noise: NoiseSource | None = None
        before_loading(self, _book_unknown)

    def __setattr__(self, name: str, value: Any) -> None:
        """Let the state dict of a network tell that its weights were paid for."""
        super().__setattr__(name, value)
        if isinstance(value, nn.Module):
            watch(value)

    @property
    def has_paid_weights(self) -> bool:
        """Whether it has released something, or holds weights of a method that has."""
        return bool(self.ledger.entries) or is_marked(self)

    def mark_weights(self) -> None:
        """Mark its networks as paid for, once something is released."""
        if self.ledger.entries:
            mark(self)

    def save_hyperparameters(
        self,
        *args: Any,
        ignore: Sequence[str] | str | None = None,
        frame: FrameType | None = None,
        logger: bool = True,
    ) -> None:
        """Save the settings, and refuse one that its constraint does not allow.

        Raises:
            Refusal: If there is one.
        """
        caller = frame or sys._getframe(1)  # Lightning reads the arguments of this constructor
        super().save_hyperparameters(*args, ignore=ignore, frame=caller, logger=logger)
        method: type = type(self)  # mypy takes its __hash__ for that of an object
        for name, constraint in constraints_of(method).items():
            if name in self.hparams:
                constraint.check(name, self.hparams[name])

    @classmethod
    def public_path(cls) -> str:
        """Dotted path of the class in a release, valid wherever the modules of the package move.

        The path of a shipped class is in ``lightning_dpg.methods``, that of a user's class in its
        module.
        """
        if cls.__module__.startswith("lightning_dpg."):
            return f"lightning_dpg.methods.{cls.__name__}"
        return f"{cls.__module__}.{cls.__qualname__}"

    @property
    def noise(self) -> NoiseSource:
        """Secret noise source, created at its first use; by then all ranks can share it."""
        if self._noise is None or not self._noise.is_shared:
            self._noise = NoiseSource()
        return self._noise

    @property
    def records(self) -> Records:
        """Records of the data module in use (private); subclasses narrow the type."""
        return served_records(type(self).__name__, self.reads, typed(self.trainer).datamodule)

    def batch_request(self) -> BatchRequest:
        """Batches that the method needs: by default one batch with all records."""
        return BatchRequest("all", steps_per_epoch=1)

    def accept_data(self, data: object) -> None:
        """Refuse data of another kind, before the budget is planned; loaders of a user's own pass."""
        if data is not None:
            check_data(type(self), data)

    def configure_callbacks(self) -> list[Callback]:
        """Add no callback; refuse a trainer without a budget, before it reads any data."""
        if self.is_inductive or not self.trainer.predicting:
            check_accountant(self.trainer, self)
        return []

    def setup(self, stage: str) -> None:
        """Refuse a trainer without a budget; a derived class may replace configure_callbacks."""
        if self.is_inductive or stage != "predict":
            check_accountant(self.trainer, self)

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan every event of a whole run: the final content of the ledger.

        A pure function of the settings, of public facts and of its arguments, which books and draws
        nothing. :attr:`row_budget` is one of these facts: it is set before a plan is asked for.
        Releases take their noise and epsilons from the plan, so planned and spent costs agree. A
        method whose noise is a setting plans as many steps as fit the budget.

        Args:
            budget: Budget of the run; an infinite epsilon adds no noise.
            steps: Private steps of the whole run.

        Raises:
            BudgetTooSmall: If no amount of noise keeps the budget.
        """
        return []

    def step_entries(self) -> list[LedgerEntry]:
        """Cost of the next training step."""
        return []

    def prove_steps(self) -> None:
        """Compose the releases and all remaining steps once, instead of at each step.

        Raises:
            MisconfigurationException: If released steps of a resumed run had other noise.
        """
        for entry in self.step_entries():
            check_same_steps(self.ledger, entry)
        if self.ledger.affords():
            rest = self.trainer.estimated_stepping_batches - self.trainer.global_step
            for entry in self.step_entries():
                prove_steps(self.ledger, entry, rest)

    def pay(
        self,
        read: LedgerEntry,
        value: V,
        law: Callable[[V, NoiseSource], Tensor] | None = None,
        *,
        also: Sequence[LedgerEntry] = (),
    ) -> Tensor:
        """Book a planned read, draw its noise and publish it, see :func:`lightning_dpg.privacy.pay.pay`."""
        return pay(read, value, self.ledger, self.noise, law, also=also)

    def lend_ledger(self, part: "PrivateModule") -> None:
        """Let a method that is a part of this one pay into this ledger, with this source of noise."""
        if part.ledger.entries:  # of weights that were loaded into it
            self.ledger.take(part.ledger.state_dict())
        part.ledger, part._noise = self.ledger, self.noise

    def unprotected_training(self, why: str) -> LedgerEntry:
        """Build the entry of a training that protects nothing."""
        return self.unprotected("training", "training", why)

    def unprotected(self, key: str, name: str, why: str) -> LedgerEntry:
        """Build the entry of a read without noise, which only an infinite budget allows."""
        return LedgerEntry(
            key=key,
            name=name,
            relation=self.relation,
            event=NonPrivate(),
            sensitivity=math.inf,
            proof=why,
        )

    @property
    def budget(self) -> Budget:
        """Budget of the run.

        Raises:
            MisconfigurationException: If there is none.
        """
        if self.ledger.budget is None:
            raise MisconfigurationException(
                f"{type(self).__name__} needs a budget: give the privacy section, or "
                "PrivacyAccountant among the callbacks"
            )
        self._check_settings(self.ledger.budget)  # also if the budget was set without accept_budget
        return self.ledger.budget

    @property
    def pays_rows(self) -> bool:
        """Whether its settings, or the data, make it read private columns of nodes.

        Such a method books entries of the relation ``attributes``, and a run of it has a row budget.
        """
        return False

    @property
    def row_budget(self) -> Budget | None:
        """Budget of the private columns of one node; None for a run that reads none (public)."""
        return self.ledger.beside.get(Relation.ATTRIBUTES)

    def accept_budget(
        self, budget: Budget, steps: int = 1, row_budget: Budget | None = None
    ) -> None:
        """Hold the ledger to its budgets, after one :meth:`check_budget`.

        Args:
            budget: Budget of the relation of the method.
            steps: Private steps of the whole run, as far as known.
            row_budget: Budget of the private columns of one node, which plans may use.
        """
        if (self.ledger.budget, self.row_budget) != (budget, row_budget):
            with self._with_rows(row_budget):
                self.check_budget(budget, steps)
            self.ledger.budget = budget
            self._set_rows(row_budget)

    @contextlib.contextmanager
    def _with_rows(self, budget: Budget | None) -> Iterator[None]:
        """Plan with another row budget for a while."""
        before = self.row_budget
        self._set_rows(budget)
        try:
            yield
        finally:
            self._set_rows(before)

    def _set_rows(self, budget: Budget | None) -> None:
        self.ledger.beside.pop(Relation.ATTRIBUTES, None)
        if budget is not None:
            self.ledger.beside[Relation.ATTRIBUTES] = budget

    def delta_setting(self) -> str | None:
        """Setting, if any, by which a method of pure epsilon spends a delta."""
        return None

    def unprotected_setting(self) -> str | None:
        """Setting, if any, that protects nothing; the method's name if it never protects."""
        if not self.adds_noise:
            return type(self).__name__
        return "noise_multiplier: 0" if self.hparams.get("noise_multiplier") == 0 else None

    def cheaper_settings(self) -> str | None:
        """Changes of settings that fit a smaller budget, to follow "or"; None if no change does."""
        return None

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Refuse a budget that the plan exceeds, before a run makes a folder.

        Args:
            budget: Budget of the run.
            steps: Private steps of the whole run, as far as known: with enough noise, any number of
                steps costs as little as one.

        Raises:
            MisconfigurationException: If the plan spends more than this budget or :attr:`row_budget`,
                or protects nothing. It names the smallest epsilon that the settings keep.
        """
        self._check_settings(budget)
        budgets = {self.ledger.relation: budget, **self.ledger.beside}
        plan = partial(self._plan_within, steps)
        check_plan(plan, budgets, type(self).__name__, self.cheaper_settings())

    def _plan_within(self, steps: int, budgets: Budgets) -> list[LedgerEntry]:
        """Plan a run by the budgets of all its relations."""
        with self._with_rows(budgets.get(Relation.ATTRIBUTES)):
            return self.plan(budgets[self.ledger.relation], steps)

    def _check_settings(self, budget: Budget) -> None:
        """Refuse settings that protect nothing, or that spend a delta of a budget without one."""
        if math.isinf(budget.epsilon):
            return
        unprotected = self.unprotected_setting()
        if unprotected is not None:
            kind = "value" if self.adds_noise else "method"
            raise MisconfigurationException(
                f"{unprotected} protects nothing, which no finite budget affords\n"
                f"take another {kind}, or set privacy.epsilon to .inf"
            )
        setting = self.delta_setting()
        if setting is not None and not budget.delta:
            raise MisconfigurationException(
                f"{setting} spends a delta, and the budget has none\nset privacy.delta below one "
                "over the number of pairs of nodes, which is public"
            )

    def condition(self) -> str | None:
        """Condition of the guarantee, to follow "if" (public); None if it always holds."""
        return None

    @property
    def reading_note(self) -> str | None:
        """Sentence at the end of the guarantee on how to read the release; None if there is none."""
        return None

    def epsilon_in_any_case(self) -> float | None:
        """Pure epsilon of all releases that holds without the condition; None if none is proved."""
        return None

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon of the paper for this run; None if the method does not compare with it."""
        return None

    def on_train_batch_start(self, batch: object, batch_idx: int) -> int | None:
        """End the epoch before a step that the budget does not cover."""
        return None if self.ledger.affords(*self.step_entries()) else -1

    def get_extra_state(self) -> Tensor:
        """Return the ledger and the assumptions as the bytes of a JSON text."""
        return _packed(self.ledger.state_dict(), self.assumptions)

    def set_extra_state(self, state: Tensor) -> None:
        """Take the ledger of weights that are loaded; forget no release of this method.

        Raises:
            Refusal: If both have releases that the other one lacks.
        """
        loaded = _unpacked(state)
        if self.ledger.take(loaded["ledger"]):
            self.assumptions = loaded["assumptions"]

    def load_released_state(self, state: dict[str, Tensor]) -> None:
        """Restore the tensors of a release, whose statement has its ledger."""
        self.load_state_dict({**state, LEDGER: self.get_extra_state()}, strict=False)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Put the ledger of a checkpoint of an earlier version beside its weights.

        Raises:
            MisconfigurationException: If the checkpoint has none: its weights may have cost any
                amount of privacy.
        """
        ledger = ledger_of(checkpoint)
        if ledger is None:
            raise MisconfigurationException(
                "the checkpoint holds no privacy ledger, so what it has spent is unknown; "
                "start a new run, or resume from a checkpoint written by this program"
            )
        if LEDGER not in checkpoint["state_dict"]:
            checkpoint["state_dict"][LEDGER] = _packed(ledger, checkpoint["assumptions"])

    def log_curve(
        self, name: str, value: Tensor, weight: float | Tensor = 1.0, *, prog_bar: bool = False
    ) -> None:
        """Log a figure of a training step, the weighted mean of those of all processes.

        All processes must call it, also those whose part of the batch is empty, since they wait for
        each other. The figure is nan where the sum of the weights is 0.

        Args:
            name: One of :attr:`curve_names`; it begins with ``nonprivate/`` if value or weight reads
                the private graph.
            value: Figure of this process, a finite number where its weight is 0.
            weight: Number of records, or of other terms, that the figure is the mean of.
            prog_bar: Whether the progress bar shows it.
        """
        curve = self.curves[name]
        curve(value.detach(), weight)
        self.log(name, curve, batch_size=1, prog_bar=prog_bar)

    def manual_backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """Refuse Lightning's backward pass under a finite budget: nobody pays for what it reads.

        Raises:
            Refusal: If the run has such a budget.
        """
        if self.adds_noise and self.ledger.budget and math.isfinite(self.ledger.budget.epsilon):
            raise Refusal(
                "manual_backward adds a gradient that nobody pays for\ntake public_backward for a loss "
                "that reads no record, and PrivateTraining.backward for one that does"
            )
        super().manual_backward(loss, *args, **kwargs)

    def public_backward(self, loss: Tensor, parameters: list[nn.Parameter]) -> None:
        """Add the gradient of a loss that reads no record to ``.grad``, averaged over ranks.

        Unlike ``manual_backward``, it leaves parameters of other networks unchanged, and it needs
        no reducer with a list of used parameters.
        """
        self.public_gradient(
            parameters, list(torch.autograd.grad(loss, parameters, materialize_grads=True))
        )

    def public_gradient(self, parameters: list[nn.Parameter], gradients: list[Tensor]) -> None:
        """Add gradients that read no record to ``.grad``, averaged over ranks."""
        if self.trainer.world_size > 1:
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            torch.distributed.all_reduce(flat)
            flat /= self.trainer.world_size
            gradients = list(torch.split(flat, [gradient.numel() for gradient in gradients]))
        for parameter, gradient in zip(parameters, gradients, strict=True):
            accumulate(parameter, gradient.view_as(parameter))


def ledger_of(checkpoint: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the state of the ledger of a checkpoint; None without one."""
    packed = checkpoint["state_dict"].get(LEDGER)
    # Earlier versions had a key beside the weights.
    return checkpoint.get("privacy_ledger") if packed is None else _unpacked(packed)["ledger"]


def _packed(ledger: dict[str, Any], assumptions: list[str]) -> Tensor:
    """Return bytes in a tensor, which every program that handles state dicts can copy and save."""
    text = json.dumps({"ledger": ledger, "assumptions": assumptions})
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def _unpacked(state: Tensor) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(state.cpu().numpy().tobytes())
    return content


def _book_unknown(method: PrivateModule, state: dict[str, Any], prefix: str, *_: object) -> None:
    """Book weights that are loaded without a ledger, unless they are those of a part."""
    if prefix + LEDGER not in state:
        if not prefix:
            why = "weights were loaded without their ledger, so what they cost is unknown"
            method.ledger.book_lost(method.unprotected("loaded_weights", "loaded weights", why))
        state[prefix + LEDGER] = method.get_extra_state()
