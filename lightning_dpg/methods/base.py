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
from lightning_dpg.interfaces import BatchRequest, Capabilities, Records
from lightning_dpg.methods.constraints import Constraints, constraints_of
from lightning_dpg.methods.planning import Budgets, check_plan
from lightning_dpg.metrics.curves import mean_curves
from lightning_dpg.nn.resized_buffers import before_loading
from lightning_dpg.preflight.data import check_accountant, check_data, served_records
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.dpsgd import accumulate
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.paid_weights import LEDGER, watch
from lightning_dpg.privacy.pay import pay

V = TypeVar("V")


class PrivateModule(pl.LightningModule):
    """A method with a ledger of all its reads of the private graph.

    A state dict holds the ledger beside the weights, so that weights that were paid for keep their
    price wherever they are loaded. Weights that are loaded without a ledger void the guarantee.

    Attributes:
        capabilities: What the method reads, learns and protects. A subclass replaces single values
            of its base.
        relation: Neighboring relation of the guarantee.
        ledger: Releases so far; part of every state dict.
        assumptions: Facts that the guarantee treats as public, phrases to follow "Assumed public:".
        curve_names: Names of the curves of training, for :meth:`log_curve`, and of other figures
            that it logs. Those without the prefix ``nonprivate/`` are public: they read released
            tensors or public facts only. What is logged under other names gets the prefix.
        constraints: Constraints of single settings, beside those of the base classes. The choices
            of an argument that is a ``Literal`` need no constraint.
    """

    capabilities: Capabilities = Capabilities()
    relation: Relation = Relation.EDGE
    curve_names: ClassVar[tuple[str, ...]] = ()
    constraints: ClassVar[Constraints] = {}

    def __init__(self) -> None:
        super().__init__()
        self._curves = mean_curves(self.curve_names)
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
        method: type = type(self)  # mypy sees the __hash__ of an object in it
        for name, constraint in constraints_of(method).items():
            if name in self.hparams:
                constraint.check(name, self.hparams[name])

    @property
    def noise(self) -> NoiseSource:
        """Secret noise source, created at its first use; by then all ranks can share it."""
        if self._noise is None or not self._noise.is_shared:
            self._noise = NoiseSource()
        return self._noise

    @property
    def records(self) -> Records:
        """Records of the data module in use (private); subclasses narrow the type."""
        return served_records(
            type(self).__name__, self.capabilities.reads, typed(self.trainer).datamodule
        )

    def batch_request(self) -> BatchRequest:
        """Batches that the method needs: by default one batch with all records."""
        return BatchRequest("all", steps_per_epoch=1)

    def accept_data(self, data: object) -> None:
        """Refuse data of another kind, before the budget is planned; loaders of a user's own pass."""
        if data is not None:
            check_data(type(self), data)

    def configure_callbacks(self) -> list[Callback]:
        """Add no callback; refuse a trainer without a budget, before it reads any data."""
        if self.capabilities.is_inductive or not self.trainer.predicting:
            check_accountant(self.trainer, self)
        return []

    def setup(self, stage: str) -> None:
        """Refuse a trainer without a budget; a derived class may replace configure_callbacks."""
        if self.capabilities.is_inductive or stage != "predict":
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
        self._check_protection(self.ledger.budget)  # also of a budget set without accept_budget
        return self.ledger.budget

    @property
    def reads_private_columns(self) -> bool:
        """Whether its settings, or the data, make it read private columns of nodes.

        Such a method books entries of the relation ``attributes``, and a run of it has a row budget.
        """
        return False

    def accept_budget(
        self, budget: Budget, steps: int = 1, row_budget: Budget | None = None
    ) -> None:
        """Hold the ledger to its budgets; refuse those that the plan exceeds, before a run has a folder.

        Args:
            budget: Budget of the relation of the method.
            steps: Private steps of the whole run, as far as known: with enough noise, any number of
                steps costs as little as one.
            row_budget: Budget of the private columns of one node, which plans may use.

        Raises:
            MisconfigurationException: If the plan spends more than a budget, or protects nothing. It
                names the smallest epsilon that the settings keep. The ledger has its budgets of before.
        """
        before = self.ledger.budget_of(Relation.ATTRIBUTES)
        if (self.ledger.budget, before) == (budget, row_budget):
            return
        self._check_protection(budget)
        with self._with_rows(row_budget):
            self._check_budget(budget)
            budgets = {self.ledger.relation: budget, **self.ledger.beside}
            plan = partial(self._plan_within, steps)
            check_plan(plan, budgets, type(self).__name__, self._cheaper_settings())
        self.ledger.budget = budget
        self._set_rows(row_budget)

    def _check_budget(self, budget: Budget) -> None:
        """Refuse a budget that the settings cannot serve, whatever the plan costs; a hook."""

    @contextlib.contextmanager
    def _with_rows(self, budget: Budget | None) -> Iterator[None]:
        """Plan with another row budget for a while."""
        before = self.ledger.budget_of(Relation.ATTRIBUTES)
        self._set_rows(budget)
        try:
            yield
        finally:
            self._set_rows(before)

    def _set_rows(self, budget: Budget | None) -> None:
        self.ledger.beside.pop(Relation.ATTRIBUTES, None)
        if budget is not None:
            self.ledger.beside[Relation.ATTRIBUTES] = budget

    def _plan_within(self, steps: int, budgets: Budgets) -> list[LedgerEntry]:
        """Plan a run by the budgets of all its relations."""
        with self._with_rows(budgets.get(Relation.ATTRIBUTES)):
            return self.plan(budgets[self.ledger.relation], steps)

    def _cheaper_settings(self) -> str | None:
        """Changes of settings that fit a smaller budget, to follow "or"; None if no change does.

        Where steps take what the first releases leave, smaller shares of these help, and so does
        more noise if it is a number.
        """
        h = self.hparams
        if "noise_multiplier" not in h:
            return None
        counted = "count_epsilon" in h and h.get("num_edges") is None
        names = [name for name in h if name.endswith("_share") and h[name]]
        changes = [f"lower {name} {h[name]:g}" for name in ["count_epsilon"] * counted + names]
        changes += ["raise noise_multiplier"] * (h["noise_multiplier"] != "auto")
        return ", or ".join(changes) or None

    def _check_protection(self, budget: Budget) -> None:
        """Refuse settings that protect nothing, and a method that spends a delta of a budget without one."""
        adds_noise = self.capabilities.adds_noise
        if math.isinf(budget.epsilon):
            return
        if not adds_noise or self.hparams.get("noise_multiplier") == 0:
            kind, what = "value", "noise_multiplier: 0"
            if not adds_noise:
                kind, what = "method", type(self).__name__
            raise MisconfigurationException(
                f"{what} protects nothing, which no finite budget affords\n"
                f"take another {kind}, or set privacy.epsilon to .inf"
            )
        if not self.capabilities.is_pure and not budget.delta:
            raise MisconfigurationException(
                f"{type(self).__name__} spends a delta, and the budget has none\nset privacy.delta below "
                "one over the number of pairs of nodes, which is public"
            )

    def condition(self) -> str | None:
        """Condition of the guarantee, to follow "if" (public); None if it always holds."""
        return None

    @property
    def reading_note(self) -> str | None:
        """Sentence at the end of the guarantee on how to read the release; None if there is none."""
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
        """Log a figure of a training step, the weighted mean over all processes.

        All processes must call it, also those whose part of the batch is empty, since they wait for
        each other. The figure is nan where the sum of the weights is 0.

        Args:
            name: One of :attr:`curve_names`; it begins with ``nonprivate/`` if value or weight reads
                the private graph.
            value: Figure of this process, a finite number where its weight is 0.
            weight: Number of records, or of other terms, that the figure is the mean of.
            prog_bar: Whether the progress bar shows it.
        """
        curve = self._curves[name]
        curve(value.detach(), weight)
        self.log(name, curve, batch_size=1, prog_bar=prog_bar)

    def manual_backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """Refuse Lightning's backward pass under a finite budget: nobody pays for what it reads.

        Raises:
            Refusal: If the run has such a budget.
        """
        if (
            self.capabilities.adds_noise
            and self.ledger.budget
            and math.isfinite(self.ledger.budget.epsilon)
        ):
            raise Refusal(
                "manual_backward adds a gradient that nobody pays for\ntake public_backward for a loss "
                "that reads no record, and PrivateTraining.backward for one that does"
            )
        super().manual_backward(loss, *args, **kwargs)


def public_backward(method: PrivateModule, loss: Tensor, parameters: list[nn.Parameter]) -> None:
    """Add the gradient of a loss that reads no record to ``.grad``, averaged over ranks.

    Unlike ``manual_backward``, it leaves parameters of other networks unchanged, and it needs no
    reducer with a list of used parameters.
    """
    gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
    add_public_gradient(method, parameters, list(gradients))


def add_public_gradient(
    method: PrivateModule, parameters: list[nn.Parameter], gradients: list[Tensor]
) -> None:
    """Add gradients that read no record to ``.grad``, averaged over the ranks of a run."""
    if method.trainer.world_size > 1:
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        torch.distributed.all_reduce(flat)
        flat /= method.trainer.world_size
        gradients = list(torch.split(flat, [gradient.numel() for gradient in gradients]))
    for parameter, gradient in zip(parameters, gradients, strict=True):
        accumulate(parameter, gradient.view_as(parameter))


def check_num_nodes(method: PrivateModule, num_nodes: int) -> None:
    """Refuse a graph of another number of nodes than the setting."""
    setting = method.hparams["num_nodes"]
    if num_nodes != setting:
        raise MisconfigurationException(
            f"num_nodes is {setting}, but the graph has {num_nodes} nodes: set "
            f"model.init_args.num_nodes to {num_nodes}, or leave it out"
        )


def needed_num_nodes(num_nodes: int | None) -> int:
    """Return the number of nodes of a method that is built for it.

    Raises:
        MisconfigurationException: If it is unknown.
    """
    if num_nodes is None:
        raise MisconfigurationException(
            "num_nodes is needed: the number of (public) nodes of the graph"
        )
    return num_nodes


def checked_names(known: list[str] | None, names: Sequence[str]) -> list[str]:
    """Names of the nodes of a graph; refuse other ones than a resumed run had."""
    if known not in (None, list(names)):
        raise MisconfigurationException(
            "the method was trained on nodes of other names, or in another order: resume with "
            "the data and the setting of names that the first run had"
        )
    return list(names)


def share_ledger(whole: PrivateModule, part: PrivateModule) -> None:
    """Let a method that is a part of another one pay into its ledger, with its source of noise."""
    if part.ledger.entries:  # of weights that were loaded into it
        whole.ledger.take(part.ledger.state_dict())
    part.ledger, part._noise = whole.ledger, whole.noise


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
    """Book weights that are loaded without a ledger, unless they belong to a part."""
    if prefix + LEDGER not in state:
        if not prefix:
            why = "weights were loaded without their ledger, so what they cost is unknown"
            entry = method.ledger.unprotected("loaded_weights", "loaded weights", why)
            method.ledger.book_lost(entry)
        state[prefix + LEDGER] = method.get_extra_state()
