"""Private steps of a method: their noise, their cost, and clipped and noised gradients."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.errors import Refusal
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.dry_run import Examples, ExampleSum, dry_run
from lightning_dpg.methods.planning import by_key
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier, max_steps
from lightning_dpg.privacy.dpsgd import DPSGD, Parameters
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.grad_samples import GradSampleSum
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sampling import PoissonBatch


class PrivateTraining(nn.Module):
    """The equal private steps of one method, each a noised sum of clipped vectors.

    A method owns one. It adds :meth:`planned` to its plan, calls :meth:`begin` at the start of a
    run, and :meth:`backward`, or :meth:`backward_network`, instead of ``loss.backward()``. The
    chosen noise is a buffer. A resumed run continues with it.

    Args:
        key: Key of the steps in the ledger.
        name: Their name there.
        proof: Function that bounds the L2 sensitivity of the sum, a function of ``max_grad_norm``;
            its docstring proves the bound.
        *arguments: Further arguments of the bound (public).
        noise_multiplier: Standard deviation of the noise over the sensitivity; ``auto`` solves it
            from the budget, the other planned costs, and the number of steps of the run. A number
            is kept, and the run ends when the budget is spent.
        max_grad_norm: Clipping norm C of one record's vector.
        sample_rate: Probability that Poisson sampling draws a record.
        relation: Neighboring relation of the guarantee.

    Attributes:
        noise_multiplier: The chosen noise, NaN before the run.
        sample_rate: Probability that Poisson sampling draws a record.
    """

    def __init__(
        self,
        key: str,
        name: str,
        proof: Callable[..., float],
        *arguments: float,
        noise_multiplier: float | Literal["auto"],
        max_grad_norm: float,
        sample_rate: float = 1.0,
        relation: Relation = Relation.EDGE,
    ) -> None:
        super().__init__()
        if noise_multiplier != "auto" and not noise_multiplier >= 0:
            raise Refusal(f"noise_multiplier must be auto, or 0 or more, got {noise_multiplier}")
        if not max_grad_norm > 0:
            raise Refusal(f"max_grad_norm must be positive, got {max_grad_norm}")
        if not 0 < sample_rate <= 1:
            raise Refusal(f"sample_rate must lie in (0, 1], got {sample_rate}")
        self.setting = noise_multiplier
        self.max_grad_norm = max_grad_norm
        self.sample_rate = sample_rate
        # One step, whose noise is not chosen yet.
        self._one_step = LedgerEntry.proved(
            key,
            name,
            Gaussian(0.0, sample_rate),
            proof,
            max_grad_norm,
            *arguments,
            relation=relation,
        )
        # The method of the current run, in a list: it is no part of this module. Sums tried in it.
        self._method: list[nn.Module] = [nn.Module()]
        self._tried: set[tuple[str, ...]] = set()
        self.noise_multiplier: Tensor
        self.register_buffer("noise_multiplier", torch.tensor(float("nan"), dtype=torch.float64))

    def take_record(self, record: str) -> None:
        """Book the steps for another unit of protection, that of the kind of the graph."""
        self._one_step = replace(self._one_step, record=record)

    @property
    def is_auto(self) -> bool:
        """Whether the budget determines the noise."""
        return self.setting == "auto"

    @property
    def adds_none(self) -> bool:
        """Whether the chosen noise is zero."""
        return float(self.noise_multiplier) == 0

    @property
    def entry(self) -> LedgerEntry:
        """Cost of one step with the chosen noise."""
        return self._steps(float(self.noise_multiplier))

    def _steps(self, noise_multiplier: float, steps: int = 1) -> LedgerEntry:
        event = Gaussian(noise_multiplier, self.sample_rate)
        return replace(self._one_step, event=event, steps=steps)

    def planned(
        self, budget: Budget, steps: int, others: Sequence[LedgerEntry] = ()
    ) -> list[LedgerEntry]:
        """Plan all steps of a run as one entry, or no entry for zero steps.

        Args:
            budget: Budget of the whole run.
            steps: Requested steps of the run.
            others: All other planned costs; those of other relations do not count.

        Raises:
            BudgetTooSmall: If no amount of noise fits the steps and the other costs.
        """
        if steps == 0:
            return []
        rate = self.sample_rate
        others = [entry for entry in others if entry.relation is self._one_step.relation]
        if self.setting == "auto":
            sigma = calibrate_noise_multiplier(budget, sample_rate=rate, steps=steps, other=others)
            return [self._steps(sigma, steps)]
        fitting = max_steps(budget, self.setting, sample_rate=rate, other=others, limit=steps)
        # The ledger refuses a plan whose first step does not fit.
        return [self._steps(self.setting, max(1, fitting))]

    def is_noiseless(self, budget: Budget) -> bool:
        """Return whether a budget requires no noise."""
        return self.setting == 0 or (self.is_auto and math.isinf(budget.epsilon))

    def begin(self, method: PrivateModule) -> bool:
        """Fix the noise at the start of a run, before the method books anything.

        A resumed run keeps the noise of its checkpoint; a new one takes that of its own budget,
        whatever noise was loaded. A number in the settings has to be that of the released steps, see :func:`lightning_dpg.methods.planning.check_same_steps`.

        Args:
            method: The method in training, whose plan holds the steps.

        Returns:
            Whether the run is new. A resumed run has its releases in its checkpoint.
        """
        self._method, self._tried = [method], set()
        if self.setting != "auto":
            self.noise_multiplier.fill_(self.setting)
        elif self.is_noiseless(method.budget):
            self.noise_multiplier.fill_(0.0)
        elif not method.ledger.entries or self.noise_multiplier.isnan():
            plan = method.plan(method.budget, _planned_steps(method))
            event = by_key(plan).get(self._one_step.key, self._steps(1.0)).event
            assert isinstance(event, Gaussian)  # any noise serves zero steps, which are not planned
            self.noise_multiplier.fill_(event.noise_multiplier)
        return not method.ledger.entries

    def drawn(self, batch: PoissonBatch) -> Tensor:
        """Return the records of a batch if it was drawn at the booked rate, for one step.

        Raises:
            Refusal: If the batch was drawn at another rate, or was read before: two steps on one
                sample cost more than two on fresh ones, which are booked.
        """
        if batch.sample_rate != self.sample_rate:
            raise Refusal(f"batch drawn at {batch.sample_rate}, booked at {self.sample_rate}")
        records: Tensor = batch.data
        if getattr(records, "is_read", False):
            raise Refusal("a batch is read twice: each private step needs a fresh sample")
        records.is_read = True  # type: ignore[attr-defined]  # a tensor takes any attribute
        return records

    def dry_run(
        self, clipped_sum: ExampleSum[Examples], parameters: Parameters, examples: Examples
    ) -> None:
        """Try a clipped sum on made-up examples, once in a run; :meth:`backward` begins with it.

        A method that releases something before its first step calls it before. A fault of its
        network then costs nothing. The values of ``examples`` are not read.

        Raises:
            Refusal: See :func:`lightning_dpg.methods.dry_run.dry_run`.
        """
        if tuple(parameters) not in self._tried:
            dry_run(clipped_sum, parameters, examples, self.max_grad_norm, self._method[0])
            self._tried.add(tuple(parameters))

    def backward(
        self,
        clipped_sum: ExampleSum[Examples],
        parameters: Parameters,
        examples: Examples,
        *,
        ledger: PrivacyLedger,
        noise: NoiseSource,
        expected_size: float,
    ) -> None:
        """Book one step, and add its noised sum over ``expected_size`` to each ``.grad``.

        Args:
            clipped_sum: ``clipped_sum(examples, max_grad_norm)`` returns sums of clipped vectors by
                name, in double precision. It reads records through ``examples`` only.
            parameters: Parameters by the names of the sum.
            examples: Tensor, or tuple of tensors, of shape ``(B, ...)``, each example of one record.
                B may be 0; the other dimensions are public.
            ledger: Charged before the sum is computed.
            noise: Secret source of the noise.
            expected_size: Public constant; never the size of a batch.

        Raises:
            PrivacyBudgetExceeded: If the step does not fit the budget; no state has changed then.
            Refusal: If the first step of a run finds that the sum cannot be computed; nothing has
                been booked for it then.
        """
        self.dry_run(clipped_sum, parameters, examples)
        entry = self.entry
        per_norm = entry.sensitivity / self.max_grad_norm
        DPSGD(float(self.noise_multiplier) * per_norm, self.max_grad_norm).backward(
            lambda max_grad_norm: dict(clipped_sum(examples, max_grad_norm)),
            parameters,
            ledger=ledger,
            entry=entry,
            noise=noise,
            expected_size=expected_size,
        )

    def backward_network(
        self,
        network: nn.Module,
        per_example_loss: Callable[..., Tensor],
        examples: tuple[Tensor, ...],
        *,
        ledger: PrivacyLedger,
        noise: NoiseSource,
        expected_size: float,
    ) -> None:
        """:meth:`backward` for a network of any layers that opacus supports.

        Args:
            network: Network in training mode; its frozen parameters are left out.
            per_example_loss: ``per_example_loss(network, *examples)`` of shape ``(B,)``. It calls the
                network that it is given, a copy in double precision.
            examples: Tensors of shape ``(B, ...)``, each example of one record; B may be 0.
            ledger: Charged before the sum is computed.
            noise: Secret source of the noise.
            expected_size: Public constant; never the size of a batch.

        Raises:
            PrivacyBudgetExceeded: If the step does not fit the budget; no state has changed then.
            Refusal: If the network has a layer that is not supported or that mixes examples, or if
                the loss is not one for each example; nothing has been booked for the step then.
        """
        clipped_sum = GradSampleSum(network, per_example_loss)
        self.backward(
            clipped_sum,
            clipped_sum.parameters,
            examples,
            ledger=ledger,
            noise=noise,
            expected_size=expected_size,
        )


def _planned_steps(method: PrivateModule) -> int:
    """Private steps of the whole run, one per batch."""
    steps = method.trainer.estimated_stepping_batches
    if steps == float("inf"):
        raise MisconfigurationException(
            "noise_multiplier: auto needs the number of steps in advance: set "
            "trainer.max_epochs, or give a number as noise_multiplier"
        )
    return int(steps)
