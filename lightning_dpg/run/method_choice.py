"""The method of a Python call: a configuration by its name, a class or an object, with settings."""

import inspect
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as pl

from lightning_dpg import methods
from lightning_dpg.callbacks.privacy_accountant import UNASKED_DELTA
from lightning_dpg.classes import find_class
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.entry_points import class_path
from lightning_dpg.errors import CommandError, nearest
from lightning_dpg.interfaces import GraphSetRecords, public_path
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.run.configurations import find_config, shipped_configs
from lightning_dpg.run.fit import method_settings
from lightning_dpg.run.lightning_cli import fill_num_nodes
from lightning_dpg.run.parser import PrivateParser
from lightning_dpg.run.shipped import configured_classes

Method = str | type[PrivateModule] | PrivateModule
"""A method by the name of its configuration, its class, or an object that was not fitted."""


class MethodChoice(NamedTuple):
    """A method with its settings, its data module and its trainer.

    Attributes:
        method: Class of the method.
        arguments: Arguments of its constructor.
        sections: Complete configuration, whose ``data`` and ``trainer`` the fit takes.
        instance: The object, if the caller gave one.
    """

    method: type[PrivateModule]
    arguments: dict[str, Any]
    sections: dict[str, Any]
    instance: PrivateModule | None

    def delta(self, delta: float | None, epsilon: float) -> float:
        """Return the delta of a budget: the argument, the configuration's, or 0 of a pure method.

        Raises:
            CommandError: If neither is there.
        """
        if delta is not None:
            return delta
        configured: float | None = self.sections["privacy"].get("delta")
        if configured is not None:
            return configured
        if self.method.capabilities.is_pure:
            return 0.0
        if math.isfinite(epsilon) and self.method.capabilities.adds_noise:
            raise CommandError(
                f"{self.method.__name__} has no shipped configuration to take delta from\n"
                "give delta, below one over the number of pairs of nodes, which is public"
            )
        return UNASKED_DELTA

    def build(self, data: pl.LightningDataModule) -> PrivateModule:
        """Build the method for data, with their public number of nodes.

        Args:
            data: The data module after its setup.

        Raises:
            CommandError: If a setting has a wrong type.
        """
        has_size = self.instance is not None and "num_nodes" in self.instance.hparams
        if self.instance is not None and not (
            has_size and self.instance.hparams["num_nodes"] is None
        ):
            return self.instance
        parser = PrivateParser()
        parser.add_class_arguments(self.method)
        arguments = parser.parse_object(self.arguments)
        fill_num_nodes(arguments, data)
        return self.method(**vars(parser.instantiate(arguments)))

    def configuration(
        self, epsilon: float, delta: float | None, seed: int, row_epsilon: float | None = None
    ) -> dict[str, Any]:
        """Complete configuration with a budget and a seed, for a fit by the command line.

        Args:
            epsilon: Budget.
            delta: Budget; None takes the delta of :meth:`delta`.
            seed: Public seed.
            row_epsilon: Budget of the private columns of one node, if the run has one.
        """
        budget = {"epsilon": float(epsilon), "delta": float(self.delta(delta, epsilon))}
        others = {key: v for key, v in self.sections["privacy"].items() if key != "row_epsilon"}
        if row_epsilon is not None:
            budget["row_epsilon"] = float(row_epsilon)
        model = {"class_path": public_path(self.method), "init_args": self.arguments}
        return self.sections | {
            "seed_everything": int(seed),
            "model": model,
            "privacy": others | budget,
        }


def choose_method(method: Method, settings: Mapping[str, Any]) -> MethodChoice:
    """Find a method and check the names of its settings.

    Args:
        method: Name of a configuration, class of a method, or a method.
        settings: Arguments of its constructor, which replace those of the configuration.

    Raises:
        CommandError: If there is no such method, or if it has no such setting.
    """
    if isinstance(method, PrivateModule):
        if settings:
            name = next(iter(settings))
            raise CommandError(
                f"{name}: a method that is built already takes no settings\n"
                f"build it with {name}, or give its class {type(method).__name__}"
            )
        cls = type(method)
        hparams = {name: value for name, value in method.hparams.items() if name[:1] != "_"}
        return MethodChoice(cls, hparams, _sections_of_class(cls), method)
    if isinstance(method, str) and method in methods.__all__:
        method = getattr(methods, method)
    if isinstance(method, str) and method not in shipped_configs() and method != class_path(method):
        method = find_class(class_path(method))
    if isinstance(method, str):
        sections = _sections_of_name(method)
        cls = find_class(sections["model"]["class_path"])
    elif isinstance(method, type) and issubclass(method, PrivateModule):
        cls, sections = method, _sections_of_class(method)
    else:
        raise CommandError(
            f"method: expected a name, a class or an object of a method, got {method!r:.80}\n"
            "names: lightning_dpg.list_methods()"
        )
    _check_names(cls, settings)
    # Numbers of numpy, as of a grid of settings, are written into files.
    settings = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in settings.items()
    }
    configured = sections["model"].get("init_args", {})
    return MethodChoice(cls, {**configured, **settings}, sections, None)


def _sections_of_name(name: str) -> dict[str, Any]:
    try:
        path = find_config(name)
    except CommandError as error:
        names = [*methods.__all__, *shipped_configs()]  # of equal names the last counts
        raise CommandError(
            f"method {name!r}: no such configuration{nearest(name, names)}\n"
            "all of them: lightning_dpg.list_methods()"
        ) from error
    return method_settings(path)


def _sections_of_class(method: type[PrivateModule]) -> dict[str, Any]:
    """Return the configuration that a class is shipped with; a general one for a user's class."""
    name = configured_classes().get(method.__name__)
    if name is not None and getattr(methods, method.__name__, None) is method:
        return method_settings(shipped_configs()[name])
    of_sets = method.capabilities.reads is GraphSetRecords
    data = "TUGraphDataModule" if of_sets else "EdgeListDataModule"
    trainer = method_settings(find_config("bter"))["trainer"]
    return {
        "model": {"init_args": {}},
        "data": {
            "class_path": f"lightning_dpg.datamodules.{data}",
            "init_args": {} if of_sets else {"nodes": {}},
        },
        "trainer": trainer | {"max_epochs": None if method.capabilities.is_trained else 1},
        "privacy": {},
    }


def _check_names(method: type[PrivateModule], settings: Mapping[str, Any]) -> None:
    """Refuse settings that the constructor does not have."""
    parameters = [name for name in inspect.signature(method).parameters if name != "self"]
    for name in settings:
        if name in parameters:
            continue
        if name in inspect.signature(pl.Trainer).parameters:
            way = f"it is one of the trainer: trainer=pytorch_lightning.Trainer({name}=...)"
        elif name in inspect.signature(EdgeListDataModule).parameters:
            module = "lightning_dpg.datamodules.EdgeListDataModule"
            way = f"it is one of the data: {module}(data, {name}=...)"
        else:
            way = f"there are: {', '.join(parameters) or 'none'}"
        raise CommandError(
            f"{method.__name__} has no setting {name!r}{nearest(name, parameters)}\n{way}"
        )
