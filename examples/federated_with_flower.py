"""Federated averaging of ``LDPGromovWasserstein`` over Flower, with noise at the server.

Three clients hold graphs of their own. In each round the server sends the weights of an encoder,
and each client trains them on its graphs and returns a clipped update. The server pays for the sum
of the updates before it publishes new weights. It is trusted with the updates, and nobody else is.
The clients can encode their nodes with the weights. A report of these rows is a further read, which
``LDPGromovWasserstein`` describes.

Run it where Flower is installed (tried with 1.41): ``pip install "flwr>=1.41,<1.43"``,
then ``python -m examples.federated_with_flower``. The connection is not encrypted and stays on this
machine: over a network, give ``start_server`` and ``start_client`` their certificates.
"""

import multiprocessing
import os

import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch_geometric.data import Batch
from torch_geometric.utils import degree

from lightning_dpg.datamodules.built_in_sets import planted_sets
from lightning_dpg.nn.node_encoders import GCN
from lightning_dpg.papers.jin2022.clients import (
    Client,
    LocalTraining,
    weighted_update,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay
from lightning_dpg.privacy.sensitivity.fitting import client_update_sensitivity

os.environ["no_grpc_proxy"] = "127.0.0.1"  # a proxy would take updates off the machine
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"  # before the import: Flower reports its use otherwise

from flwr.client import NumPyClient, start_client
from flwr.common import (
    FitRes,
    NDArrays,
    Parameters,
    Scalar,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from flwr.server import ServerConfig, start_server
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAvg

SIZES = (67, 67, 66)
"""Number of graphs of each client (public)."""
TRAINING = LocalTraining(epochs=5, learning_rate=0.003, max_norm=1.0)


def encoder() -> GCN:
    """Encoder of nodes with public random weights: all parties build the same one."""
    torch.manual_seed(0)
    return GCN(1, 8, 2)  # degree of a node, width of its row, labels of graphs


def client(number: int) -> Client:
    """Graphs of one client (private); a real one reads a file of its own here.

    Args:
        number: Number of the client, from 0.
    """
    own = Batch.from_data_list(planted_sets()[number :: len(SIZES)])
    features = degree(own.edge_index[0], own.num_nodes).log1p()[:, None]
    return Client(features, own.edge_index, own.batch, own.y, SIZES[number] / sum(SIZES))


class Party(NumPyClient):  # type: ignore[misc, unused-ignore]
    """A client, in a process of its own.

    Args:
        number: Number of the client, from 0.
    """

    def __init__(self, number: int) -> None:
        self.client, self.encoder = client(number), encoder()

    def fit(
        self, parameters: NDArrays, config: dict[str, Scalar]
    ) -> tuple[NDArrays, int, dict[str, Scalar]]:
        """Train the released weights, and return the clipped update times the client's weight."""
        weights = torch.from_numpy(parameters[0].copy())
        vector_to_parameters(weights, self.encoder.parameters())
        update = weighted_update(self.encoder, [self.client], TRAINING)
        return [update.numpy()], 1, {}


class PrivateSum(FedAvg):  # type: ignore[misc, unused-ignore]
    """The server: adds the updates of a round, pays for the sum, and takes a step along it.

    Args:
        read: Cost of a round.
        ledger: Ledger that pays; it refuses a round that its budget does not cover.
    """

    def __init__(self, read: LedgerEntry, ledger: PrivacyLedger) -> None:
        self.read, self.ledger, self.noise = read, ledger, NoiseSource()
        self.weights = parameters_to_vector(encoder().parameters()).detach()
        super().__init__(
            fraction_evaluate=0.0,
            min_fit_clients=len(SIZES),
            min_available_clients=len(SIZES),
            initial_parameters=ndarrays_to_parameters([self.weights.numpy()]),
        )

    def aggregate_fit(
        self,
        server_round: int,
        results: list[tuple[ClientProxy, FitRes]],
        failures: list[tuple[ClientProxy, FitRes] | BaseException],
    ) -> tuple[Parameters | None, dict[str, Scalar]]:
        """Publish new weights; without the answer of each client nothing is published or paid."""
        if failures:
            return None, {}
        updates = [parameters_to_ndarrays(answer.parameters)[0] for _, answer in results]
        total = torch.stack([torch.from_numpy(update) for update in updates]).sum(0)
        self.weights = self.weights + pay(self.read, total, self.ledger, self.noise).float()
        return ndarrays_to_parameters([self.weights.numpy()]), {}


def run_client(number: int, address: str) -> None:
    """Answer the server until it ends.

    Args:
        number: Number of the client, from 0.
        address: Address of the server.
    """
    start_client(server_address=address, client=Party(number).to_client(), insecure=True)


def train(
    budget: Budget, rounds: int = 5, address: str = "127.0.0.1:8740"
) -> tuple[GCN, PrivacyLedger]:
    """Train the encoder in processes of clients, and return it with what was paid.

    Args:
        budget: What all rounds may spend; of each graph of a client.
        rounds: Number of rounds.
        address: Address of the server on this machine.
    """
    read = LedgerEntry.proved(
        "client_updates",
        "sum of client updates",
        Gaussian(calibrate_noise_multiplier(budget, steps=rounds)),
        client_update_sensitivity,
        TRAINING.max_norm,
        max(SIZES) / sum(SIZES),
        relation=Relation.LOCAL_GRAPH,
    )
    ledger = PrivacyLedger(Relation.LOCAL_GRAPH)
    ledger.budget = budget
    server = PrivateSum(read, ledger)
    context = multiprocessing.get_context("spawn")
    parties = [
        context.Process(target=run_client, args=(number, address), daemon=True)
        for number in range(len(SIZES))
    ]
    for party in parties:
        party.start()
    start_server(server_address=address, config=ServerConfig(num_rounds=rounds), strategy=server)
    for party in parties:
        party.join()
    trained = encoder()
    vector_to_parameters(server.weights, trained.parameters())
    return trained, ledger


if __name__ == "__main__":
    _, paid = train(Budget(epsilon=8.0, delta=1e-5))
    epsilon, accountant = paid.headline(1e-5)
    rounds = sum(entry.steps for entry in paid.entries)
    print(f"{rounds} rounds of {len(SIZES)} clients: epsilon {epsilon:.3g} at delta 1e-05")
    print(f"unit of protection: one graph of a client ({accountant} accountant)")
