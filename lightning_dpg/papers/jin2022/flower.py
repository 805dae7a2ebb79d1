"""Clients of federated averaging in separate processes, connected to the server by Flower.

The server sends weights and receives sums of updates by gRPC, unencrypted and therefore on the
loopback interface only: another user of the machine could connect as well, and would receive the
weights. In this transport of Flower the server starts each round, as Lightning requires; the newer
transport leaves the loop to Flower.
"""

import logging
import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from lightning_dpg.nn.node_encoders import NodeEncoder
from lightning_dpg.papers.jin2022.clients import (
    Client,
    LocalTraining,
    weighted_update,
)

_SECONDS_TO_START = 120.0
_SECONDS_TO_STOP = 10.0


def check_installed() -> None:
    """Refuse to continue without Flower, before anything is spent.

    Raises:
        MisconfigurationException: If it is not installed.
    """
    if find_spec("flwr") is None:
        raise MisconfigurationException(
            "flower_processes needs Flower, which is not installed\n"
            'install the extra: pip install "lightning_dpg[flower]"'
        )


class FlowerClients:
    """Processes of clients, and the server that requests their updates.

    Args:
        shares: Clients of each process.
        network: Encoder; each process gets a copy.
        training: Settings of the clients' training.

    Raises:
        MisconfigurationException: If a process ends before it reports.
    """

    def __init__(
        self, shares: Sequence[Sequence[Client]], network: NodeEncoder, training: LocalTraining
    ) -> None:
        # Set before the import: otherwise Flower reports its use to its makers.
        os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
        from flwr.server import Server, SimpleClientManager
        from flwr.server.superlink.fleet.grpc_bidi.grpc_server import start_grpc_server

        _silence()
        address = f"127.0.0.1:{_free_port()}"
        self._manager = SimpleClientManager()
        self._flower = Server(client_manager=self._manager)
        self._server = start_grpc_server(self._manager, address)
        context = multiprocessing.get_context("spawn")
        self._processes = [
            context.Process(
                target=_report,
                args=(address, number, list(share), network, training),
                daemon=True,
                name=f"client process {number}",
            )
            for number, share in enumerate(shares)
        ]
        try:
            for process in self._processes:
                process.start()
            self._wait()
        except BaseException:  # a signal as well
            self.close()
            raise

    def weighted_update(self, network: NodeEncoder) -> Tensor:
        """Sum of the updates of all clients, each times its weight (private).

        Args:
            network: Encoder with the weights of the server.

        Raises:
            MisconfigurationException: If a process does not answer.
        """
        from flwr.common import FitIns, ndarrays_to_parameters, parameters_to_ndarrays
        from flwr.server.server import fit_clients

        weights = parameters_to_vector(network.parameters()).detach().cpu().numpy()
        order = FitIns(ndarrays_to_parameters([weights]), {})
        proxies = self._manager.all().values()
        answers, failures = fit_clients([(proxy, order) for proxy in proxies], None, None, 0)
        if failures or len(answers) < len(self._processes):
            self._fail(f"{len(answers)} of {len(self._processes)} client processes answered")
        # Add in the order of the processes: floating-point sums depend on the order.
        by_number = {int(answer.metrics["number"]): answer for _, answer in answers}
        updates = [parameters_to_ndarrays(by_number[k].parameters)[0] for k in sorted(by_number)]
        return torch.stack([torch.from_numpy(update) for update in updates]).sum(0)

    def close(self) -> None:
        """Stop the client processes and the server; a second call does nothing."""
        self._flower.disconnect_all_clients(timeout=_SECONDS_TO_STOP)
        for process in self._processes:
            if process.pid is not None:
                process.join(_SECONDS_TO_STOP)
                process.terminate()
                process.join()
        self._server.stop(None)

    def _wait(self) -> None:
        """Wait until all client processes are connected."""
        end = time.monotonic() + _SECONDS_TO_START
        while self._manager.num_available() < len(self._processes):
            ended = [process for process in self._processes if process.exitcode is not None]
            if ended or time.monotonic() > end:
                there = self._manager.num_available()
                self._fail(f"{there} of {len(self._processes)} client processes are connected")
            time.sleep(0.05)

    def _fail(self, what: str) -> None:
        self.close()
        raise MisconfigurationException(
            f"{what}; the error of the others is above\n"
            "a script that calls fit needs the guard: if __name__ == '__main__'"
        )


class StopClients(Callback):
    """Callback that stops the client processes with the run: Python would wait for them forever.

    Args:
        shut_down: Function that stops them.
    """

    def __init__(self, shut_down: Callable[[], None]) -> None:
        self._shut_down = shut_down

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop the client processes when the run ends before its rounds."""
        self._shut_down()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Stop the client processes when the run fails."""
        self._shut_down()


def _report(
    address: str,
    number: int,
    clients: Sequence[Client],
    network: NodeEncoder,
    training: LocalTraining,
) -> None:
    """Run a client process: train its clients for each message of weights, and send the sum."""
    os.environ["no_grpc_proxy"] = "127.0.0.1"  # a proxy would take updates off the machine
    from flwr.client import NumPyClient, start_client

    class Trainee(NumPyClient):  # type: ignore[misc, unused-ignore]
        def fit(
            self, parameters: list[NDArray[np.float32]], config: dict[str, object]
        ) -> tuple[list[NDArray[np.float64]], int, dict[str, int]]:
            weights = torch.from_numpy(parameters[0].copy())
            vector_to_parameters(weights, network.parameters())
            total = weighted_update(network, clients, training)
            return [total.numpy()], len(clients), {"number": number}

    _silence()
    start_client(server_address=address, client=Trainee().to_client(), insecure=True)


def _silence() -> None:
    """Drop the log messages of Flower about each call, and about its newer transport."""
    logging.getLogger("flwr").setLevel(logging.CRITICAL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
