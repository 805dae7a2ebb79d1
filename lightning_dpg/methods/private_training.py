"""Private steps of a method: their noise, their cost, and clipped and noised gradients."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.errors import Refusal
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.dry_run import Examples, ExampleSum, dry_run
from lightning_dpg.methods.planning import by_key
from lightning_dpg.preflight.trainer import check_sampler
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier, max_steps
from lightning_dpg.privacy.dpsgd import DPSGD, Parameters, network_sum, trained_parameters
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sampling import PoissonBatch


class PrivateTraining(nn.Module):
    """The equal private steps of one method, each a noised sum of clipped vectors.

    A method owns one. It adds :meth:`planned` to its plan, calls :meth:`begin` at the start of a
    run, and :meth:`drawn` and then once :meth:`backward`, or :meth:`backward_network`, in each step,
    instead of ``loss.backward()``. The chosen noise is a buffer. A resumed run continues with it.

    What a step reads is what the sampler drew, and what it costs is what was planned: a step on other
    records, on more examples, or with other settings is refused before it is booked.

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
        max_grad_norm: Clipping norm C, which cannot be set anew.
        sample_rate: Probability that Poisson sampling draws a record, which cannot be set anew.
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
        # Noise and expected size of the current run, once they are chosen.
        self._terms: dict[str, float] = {}
        # Number of records of the draw that no step has read yet, and of earlier readings of the data
        # module's records; None without a draw.
        self._unread: tuple[int, int] | None = None
        self.noise_multiplier: Tensor = nn.Buffer(torch.tensor(float("nan"), dtype=torch.float64))

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, but no setting that the plan has fixed.

        Raises:
            Refusal: If it is one.
        """
        if name in _FIXED and name in self.__dict__:
            raise Refusal(
                f"{name} cannot be set anew: the plan has booked each step with {self.__dict__[name]}\n"
                "pass the value to the constructor of a new method"
            )
        super().__setattr__(name, value)

    def take_record(self, record: str) -> None:
        """Book the steps for the unit of protection of the kind of the graph."""
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
            others: All other planned costs; costs of other relations do not count.

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

        A resumed run keeps the noise of its checkpoint; a new one computes it from its own
        budget, whatever noise was loaded. A number in the settings has to equal the noise of the released
        steps, see
        :func:`lightning_dpg.privacy.calibration.prove_steps`.

        Args:
            method: The method in training, whose plan holds the steps.

        Returns:
            Whether the run is new. A resumed run has its releases in its checkpoint.
        """
        self._method, self._tried = [method], set()
        self._terms, self._unread = {}, None
        if self.setting != "auto":
            self.noise_multiplier.fill_(self.setting)
        elif self.is_noiseless(method.budget):
            self.noise_multiplier.fill_(0.0)
        elif not method.ledger.entries or self.noise_multiplier.isnan():
            plan = method.plan(method.budget, _planned_steps(method))
            event = by_key(plan).get(self._one_step.key, self._steps(1.0)).event
            assert isinstance(event, Gaussian)  # any noise serves zero steps, which are not planned
            self.noise_multiplier.fill_(event.noise_multiplier)
        self._keep("noise_multiplier", float(self.noise_multiplier))
        return not method.ledger.entries

    def drawn(self, batch: PoissonBatch) -> Tensor:
        """Return the records of a batch, for one step, if they are what the sampler drew.

        The sampler of the trainer's loader keeps the numbers of the records of each draw. They are
        read again from the loader's data set: no hook of a data module, callback or method can have
        changed the batch. A draw is read once, and draws that were left out before it are gone.

        Raises:
            Refusal: If the batch was drawn at another rate, was read before, or is another one. Two
                steps on one sample cost more than two on fresh ones, which are booked.
        """
        self._keep_rate(batch.sample_rate)
        records: Tensor = batch.data
        if self.adds_none:
            return records
        method = self._method[0]
        assert isinstance(method, PrivateModule)  # set by `begin`
        loader: Any = method.trainer.train_dataloader
        sampler = check_sampler(loader, method.trainer)
        self._keep_rate(sampler.sample_rate)
        self._unread = None
        while sampler.unread:
            numbers = sampler.unread.popleft()
            expected = loader.dataset[numbers].data
            if not torch.equal(expected.to(records.device), records):
                continue
            if len(records) > len(numbers) and not method.capabilities.repeats_edges:
                raise Refusal(
                    "the data set returns more examples than records were drawn: each edge is one "
                    "record, in one direction\nreturn one row for each number in __getitem__"
                )
            self._unread = len(records), _times_read(method)
            return records
        raise Refusal(
            "a batch is not what its sampler drew: it was read before, or a hook, callback or data set "
            "has changed it\neach private step needs a fresh sample as it is: one training_step, one "
            "batch, one drawn(batch)"
        )

    def dry_run(
        self,
        clipped_sum: ExampleSum[Examples],
        parameters: Parameters,
        examples: Examples,
        expected_size: float,
    ) -> None:
        """Try a clipped sum on made-up examples, once in a run; :meth:`backward` begins with it.

        A method that releases something before its first step calls it before. A fault of its
        network then costs nothing. The values of ``examples`` are not read.

        Args:
            clipped_sum: As for :meth:`backward`.
            parameters: Parameters by the names of the sum.
            examples: Tensors whose shapes, without the first dimension, and types count.
            expected_size: About as many made-up examples are tried.

        Raises:
            Refusal: See :func:`lightning_dpg.methods.dry_run.dry_run`.
        """
        if tuple(parameters) not in self._tried:
            method = self._method[0]
            dry_run(clipped_sum, parameters, examples, self.max_grad_norm, expected_size, method)
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
            Refusal: If the examples are more than the records of the draw, if the draw was read
                before, or the records of the data module since; if noise or expected size have changed; or if the first step of a run finds
                that the sum cannot be computed. Nothing has been booked for the step then.
        """
        self._read(examples)
        self._keep("noise_multiplier", float(self.noise_multiplier))
        self._keep("expected_size", expected_size)
        self.dry_run(clipped_sum, parameters, examples, expected_size)
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

    def _read(self, examples: Tensor | tuple[Tensor, ...]) -> None:
        """Take the draw for a step of a run; refuse more examples than it has records."""
        method, drawn = self._method[0], self._unread
        self._unread = None
        if self.adds_none or not isinstance(method, PrivateModule):
            return
        if drawn is None:
            raise Refusal(
                "a private step without a draw: take drawn(batch) once in each training_step, and call "
                "backward once\na gradient that is used again costs nothing; a second one on the same "
                "records is not paid for"
            )
        records, times_read = drawn
        if _times_read(method) != times_read:
            raise Refusal(
                "a private step reads the records of the data module beside its draw: a loss that reads "
                "other records than its example voids the guarantee\n"
                "read released values in their place, such as noisy sums of neighbors"
            )
        count = len(examples if isinstance(examples, Tensor) else examples[0])
        if count > records:
            raise Refusal(
                "a private step has more examples than records were drawn, so one record would move "
                "its sum further than is booked\npass one example for each record of drawn(batch)"
            )

    def _keep_rate(self, sample_rate: float) -> None:
        """Refuse a rate that is not booked."""
        if sample_rate != self.sample_rate:
            raise Refusal(f"batch drawn at {sample_rate}, booked at {self.sample_rate}")

    def _keep(self, name: str, value: float) -> None:
        """Refuse a value that has changed in a run."""
        if self._terms.setdefault(name, value) != value:
            raise Refusal(
                f"{name} has changed in a run: what is booked for a step is fixed when it is planned\n"
                "start a new run for another value, with a new method"
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
        """:meth:`backward` for a network of any layers that ``torch.func`` computes example by example.

        Args:
            network: Network; its frozen parameters are left out.
            per_example_loss: ``per_example_loss(network, *examples)`` of shape ``(B,)``. It calls the
                network that it is given, in double precision. It is called for each example alone,
                with B = 1, so examples cannot meet in it.
            examples: Tensors of shape ``(B, ...)``, each example of one record; B may be 0.
            ledger: Charged before the sum is computed.
            noise: Secret source of the noise.
            expected_size: Public constant; never the size of a batch.

        Raises:
            PrivacyBudgetExceeded: If the step does not fit the budget; no state has changed then.
            Refusal: If the network has a layer that cannot be computed for one example alone, or if
                the loss is not one for each example; nothing has been booked for the step then.
        """
        self.backward(
            partial(network_sum, network, per_example_loss),
            trained_parameters(network),
            examples,
            ledger=ledger,
            noise=noise,
            expected_size=expected_size,
        )


_FIXED = frozenset({"setting", "max_grad_norm", "sample_rate"})


def _times_read(method: PrivateModule) -> int:
    """Return how often the records of a method's data module were read, as far as it counts."""
    count: int = getattr(typed(method.trainer).datamodule, "times_read", 0)
    return count


def _planned_steps(method: PrivateModule) -> int:
    """Private steps of the whole run, one per batch."""
    steps = method.trainer.estimated_stepping_batches
    if steps == float("inf"):
        raise MisconfigurationException(
            "noise_multiplier: auto needs the number of steps in advance: set "
            "trainer.max_epochs, or give a number as noise_multiplier"
        )
    return int(steps)
