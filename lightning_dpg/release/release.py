"""An open release: synthetic graphs, scores of pairs or features, and the guarantee."""

import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch_geometric.data import Data

import lightning_dpg
from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.graph.attributes import LABELS, attributes_of
from lightning_dpg.graph.drawn_tables import edge_values, rows_of, transfers_of
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.methods.graph_features import GraphFeatureRelease
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.metrics.figures import Bars, Pictures, plot
from lightning_dpg.metrics.pictures import pictures_of, series_of
from lightning_dpg.outcome import LOGGER
from lightning_dpg.privacy.budget import digits_down, digits_up
from lightning_dpg.release.card.document import CARD, rendered
from lightning_dpg.release.checksums import digest, files_of, write_sums
from lightning_dpg.release.datasets import write_neo4j, write_pyg_dataset
from lightning_dpg.release.statement import NO_GUARANTEE
from lightning_dpg.release.writer import write_folder
from lightning_dpg.run_folder import GENERATOR, LEARNER, STATEMENT, SUMS, UNSUMMED
from lightning_dpg.tables import as_data_frame

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.figure import Figure

    from lightning_dpg.release.agreement import Verification

_MARKS = (STATEMENT, GENERATOR, LEARNER)
"""Files of which every release has one."""


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """An open release. All its methods read released tensors only, and spend no budget.

    :func:`lightning_dpg.fit` and :func:`lightning_dpg.open_release` return it.

    Attributes:
        method: Method around its released tensors, of the class that was fitted.
        statement: Content of ``privacy.json``; empty in a release without one.
        folder: Folder of the files of the release; None if it was opened without one.
        configuration: Configuration of the fit, if this process has made it. It belongs to the
            owner, and :meth:`save` does not write it.
        checksum: SHA-256 digest of the file of the tensors, when the release was opened.

    Example:
        >>> import lightning_dpg as dpg
        >>> release = dpg.fit("karate", "chung_lu", epsilon=1.0)
        >>> release.sample(seed=3).num_nodes
        34
        >>> release
        Release of ChungLu: one graph of 34 nodes
        edge-level (1, 0)-DP (add/remove one undirected edge), sum of pure epsilons accountant, ...
        sample(seed), sample_many(n), to_networkx(seed), to_pandas(seed), plot(kind), edge_score(pairs), ...
        >>> release.epsilon, release.delta, release.relation
        (1.0, 0.0, 'edge')
        >>> bool(release.verify()), release.card().splitlines()[0]
        (True, '# Synthetic graphs by ChungLu')
        >>> release.plot("degrees").savefig("degrees.png")  # doctest: +SKIP
    """

    method: Any
    statement: dict[str, Any]
    folder: Path | None = None
    configuration: dict[str, Any] | None = None
    checksum: str | None = None

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence, and in a second one of private columns."""
        return str(self.statement.get("guarantee", "none: the release states no guarantee."))

    @property
    def epsilon(self) -> float:
        """Epsilon that is proved for :attr:`relation`; infinite without a guarantee."""
        return float(self.statement.get("epsilon", math.inf))

    @property
    def delta(self) -> float:
        """Delta of :attr:`epsilon`."""
        return float(self.statement.get("delta", 0.0))

    @property
    def relation(self) -> str:
        """Neighboring relation of the guarantee, such as ``edge``; empty without a statement."""
        return str(self.statement.get("relation", ""))

    def card(self) -> str:
        """Return the model card as Markdown.

        Raises:
            CommandError: If the files of the release are no longer there, or have no card.
        """
        path = None if self.folder is None else self.folder / CARD
        if path is None or not path.is_file():
            raise CommandError(f"{path or self._name}: there is no file of the model card")
        return path.read_text(encoding="utf-8")

    def verify(self) -> "Verification":
        """Check the files of the release, as :func:`lightning_dpg.verify` does.

        Raises:
            CommandError: If its files are no longer there.
        """
        if self.folder is None:
            raise CommandError(f"{self._name}: there are no files of this release to verify")
        return lightning_dpg.verify(self.folder)

    def sample(self, seed: int = 0) -> Data:
        """Draw a synthetic graph.

        Args:
            seed: Public seed: equal seeds draw equal graphs.

        Returns:
            The graph, with ``edge_index`` in both directions and ``node_names``; where attributes of
            nodes are public also with ``x``, ``attribute_names`` and ``y``, which all samples share.

        Raises:
            CommandError: If the method releases features of graphs, and draws none, or if the seed
                is no whole number of 64 bits.
        """
        self._check_draws()
        if not isinstance(seed, Integral) or not -(2**63) <= seed < 2**64:
            raise CommandError(f"seed must be a whole number of 64 bits, got {seed!r:.60}")
        with torch.no_grad():
            graph: Data = self.method.eval().sample(torch.Generator().manual_seed(int(seed)))
        return graph

    def sample_many(self, n: int, seed: int = 0) -> list[Data]:
        """Draw synthetic graphs.

        Args:
            n: Number of graphs.
            seed: Public seed of the first graph; the next ones have the next seeds.

        Returns:
            The graphs, as those of :meth:`sample`.

        Raises:
            CommandError: If the method draws no graphs, or if ``n`` is below 1.
        """
        if not isinstance(n, Integral) or n < 1:
            raise CommandError(f"n must be a positive whole number, got {n!r:.60}")
        return [self.sample(number) for number in range(seed, seed + n)]

    def to_networkx(self, seed: int = 0) -> nx.Graph:
        """Draw a synthetic graph for networkx.

        Args:
            seed: Public seed, as for :meth:`sample`.

        Returns:
            A graph whose nodes are the names in the release: whole numbers if all of them are, as
            ``0``, else texts. It is a ``DiGraph`` of a directed graph; the sides of a bipartite one are
            the node attribute ``bipartite``.
            Attributes of nodes are those other than 0; ``graph.graph["node_default"]`` holds the
            zeros. Edges with drawn transfers have their total as ``amount``, and ``first_time``.

        Raises:
            CommandError: If the method releases features of graphs, and draws none.
        """
        sample = self._named(seed)
        space = space_of(sample)
        graph = nx.DiGraph() if space.kind == "directed" else nx.Graph()
        graph.add_nodes_from(sample.node_names)
        _set_attributes(graph, sample)
        if space.num_left is not None:
            sides = dict(zip(sample.node_names, sample.sides.tolist(), strict=True))
            nx.set_node_attributes(graph, sides, "bipartite")
        names = np.array(sample.node_names, dtype=object)
        edges, values = names[space.edges(sample).numpy()].tolist(), edge_values(sample)
        graph.add_edges_from(edges)
        for name, cells in values.items():
            found = zip(map(tuple, edges), cells, strict=True)
            nx.set_edge_attributes(graph, {pair: cell for pair, cell in found if cell != ""}, name)
        return graph

    def to_pandas(self, seed: int = 0) -> Any:
        """Draw the edges of a synthetic graph.

        Args:
            seed: Public seed, as for :meth:`sample`.

        Returns:
            A DataFrame of pandas with a row per edge: ``source`` and ``target``, named as in
            :meth:`to_networkx`, and ``amount`` and ``first_time`` of edges with drawn transfers.

        Raises:
            CommandError: If the method draws no graphs, or if pandas is not installed.
        """
        sample = self._named(seed)
        names = np.array(sample.node_names, dtype=object)
        source, target = names[space_of(sample).edges(sample).numpy()].reshape(-1, 2).T.tolist()
        columns = {"source": source, "target": target, **edge_values(sample)}
        return as_data_frame(list(columns), zip(*columns.values(), strict=True))

    def people(self, seed: int = 0) -> Any:
        """Draw the rows of the nodes of a synthetic graph, which are not those of their bearers.

        Args:
            seed: Public seed, as for :meth:`sample`.

        Returns:
            A DataFrame of pandas with a row per node: ``node``, its name in the graph of this seed, and
            its drawn value of each private column.

        Raises:
            CommandError: If the release has no rows, or if pandas is not installed.
        """
        sample = self._named(seed)
        rows = rows_of(sample)
        if rows is None:
            raise CommandError(f"{self._name} draws no rows: it has learned no private columns")
        cells = zip(sample.node_names, *rows.texts(), strict=True)
        return as_data_frame(["node", *rows.domains], cells)

    def transfers(self, seed: int = 0) -> Any:
        """Draw the transfers of a synthetic graph.

        Args:
            seed: Public seed, as for :meth:`sample`.

        Returns:
            A DataFrame of pandas with a row per transfer: the names ``source`` and ``target`` in the
            graph of this seed, and ``amount`` and ``time`` as far as the method has learned them.

        Raises:
            CommandError: If the release has no transfers, or if pandas is not installed.
        """
        sample = self._named(seed)
        transfers = transfers_of(sample)
        if transfers is None:
            raise CommandError(
                f"{self._name} draws no transfers: it has learned no amounts and no times"
            )
        names = np.array(sample.node_names, dtype=object)
        source, target = names[transfers.pairs.numpy()].T.tolist()
        columns = {"source": source, "target": target, **transfers.columns()}
        return as_data_frame(list(columns), zip(*columns.values(), strict=True))

    def pictures(self, seed: int = 0) -> Pictures:
        """Return the pictures of what the release holds, by kind; they read nothing else.

        Args:
            seed: Public seed, as for :meth:`sample`.
        """
        if isinstance(self.method, Synthesizer):
            return pictures_of(self.sample(seed))
        if not isinstance(self.method, NodeClassifier):
            return {}
        predicted = self.predict()
        shares = [*enumerate((predicted == label).mean() for label in self.method.classes.tolist())]
        names = [*map(str, self.method.classes.tolist())]
        bars = Bars("Predicted classes", "share of nodes", names, series_of({"synthetic": shares}))
        return {"classes": lambda: [bars]}

    def plot(self, kind: str | None = None, seed: int = 0) -> "Figure":
        """Draw pictures of a synthetic graph or of its tables; nothing but the release is read.

        Args:
            kind: ``graph`` (up to 300 nodes), ``adjacency``, ``degrees``, ``clustering``,
                ``distances``, and of what it has learned ``columns``, ``pairs``, ``amounts``, ``days``,
                ``hours``, ``gaps``, ``classes``; by default the first two that it holds.
            seed: Public seed, as for :meth:`sample`.

        Returns:
            A figure of matplotlib, which a notebook shows and ``savefig`` writes. Directions are not
            drawn.

        Raises:
            CommandError: If the release does not hold the kind; it lists those that it holds.
        """
        return plot(self.pictures(seed), kind, f"this release of {self._name}")

    def edge_score(self, pairs: ArrayLike | Tensor) -> Tensor:
        """Score pairs of nodes: a higher score means a likelier edge.

        Args:
            pairs: Pairs of node numbers, or pairs of node names, shape ``(P, 2)``.

        Returns:
            Scores of shape ``(P,)``.

        Raises:
            CommandError: If the method has no scores, or if a pair is no pair of its nodes.
        """
        self._check_draws()
        numbers = self._numbers(pairs)
        with torch.no_grad():
            scores: Tensor = self.method.eval().score(numbers)
        return scores

    def predict(self, attributes: ArrayLike | Tensor | None = None) -> NDArray[np.int64]:
        """Predict classes of nodes, which reads no edge and costs no privacy.

        Args:
            attributes: Attributes of new nodes, shape ``(P, F)``, in the columns of the fit; by
                default the classes of the nodes of the graph are predicted.

        Returns:
            Class of each node, shape ``(P,)``.

        Raises:
            CommandError: If the method predicts no classes of nodes, or has other columns.
        """
        places = self.predict_proba(attributes).argmax(1)
        classes: NDArray[np.int64] = self.method.classes.numpy(force=True)[places]
        return classes

    def predict_proba(self, attributes: ArrayLike | Tensor | None = None) -> NDArray[np.float32]:
        """Predict probabilities of the classes ``method.classes`` of nodes, see :meth:`predict`.

        Args:
            attributes: Attributes of new nodes, shape ``(P, F)``; by default the nodes of the graph.

        Returns:
            Probabilities of shape ``(P, C)``.

        Raises:
            CommandError: If the method predicts no classes of nodes, or has other columns.
        """
        if not isinstance(self.method, NodeClassifier):
            raise CommandError(f"{self._name} predicts no classes of nodes")
        try:
            with torch.no_grad():
                found = (
                    self.method.node_posteriors()
                    if attributes is None
                    else self.method.eval().predict_proba(_matrix(attributes))
                )
        except Refusal as error:
            raise CommandError(str(error)) from error
        posteriors: NDArray[np.float32] = found.numpy(force=True)
        return posteriors

    @property
    def features(self) -> dict[str, NDArray[Any]]:
        """Released features of each graph by name, as in ``features.npz``.

        Raises:
            CommandError: If the method draws graphs instead.
        """
        if not isinstance(self.method, GraphFeatureRelease):
            way = "predict()" if isinstance(self.method, NodeClassifier) else "sample(seed)"
            raise CommandError(f"{self._name} releases no features of graphs\nuse {way}")
        return self.method.released_arrays()

    @property
    def labels(self) -> NDArray[Any]:
        """Public labels of the graphs whose features were released, shape ``(G,)``.

        Raises:
            CommandError: If the method draws graphs instead.
        """
        return self.features["labels"]

    def save(self, folder: str | Path) -> Path:
        """Write the complete release: graphs or features, tensors, statement, card and checksums.

        Args:
            folder: New or empty folder, or folder of a release, which is replaced.

        Returns:
            The folder.

        Raises:
            CommandError: If the folder holds anything but a release, if it cannot be written, or if
                another release was written in place of this one.
        """
        source, target = self.folder, Path(folder).expanduser()
        if source is None or not source.is_dir():
            raise CommandError(f"{target}: the files of this release are no longer there to save")
        tensors = [source / name for name in (GENERATOR, LEARNER) if (source / name).is_file()]
        if [digest(path) for path in tensors] != [self.checksum]:
            raise CommandError(f"{source}: the release in it was replaced since it was opened")
        with self._writing(target):
            refuse_foreign_folder(target)
            if not (target.exists() and target.samefile(source)):
                write_folder(target, lambda scratch: _copy(source, scratch))
        return target

    def to_pyg_dataset(self, root: str | Path, n: int = 1, seed: int = 0) -> Path:
        """Write a folder that PyTorch Geometric opens as a dataset, without this package.

        It has the graphs, ``dataset.py`` with the class ``SyntheticGraphs``, ``privacy.json``, and made
        from it a data card for the Hub, ``README.md``, and Croissant metadata, ``croissant.json``.

        Args:
            root: New or empty folder.
            n: Number of graphs; of a release of a set of graphs, how often the whole set is drawn.
            seed: Public seed of the first draw; the next ones have the next seeds.

        Returns:
            The folder.

        Raises:
            CommandError: If the method draws no graphs, if ``n`` is below 1, or if the folder is not
                empty or cannot be written.
        """

        def write(folder: Path) -> None:
            graphs = self.sample_many(n, seed)
            if isinstance(self.method, GraphSetSynthesizer):
                seeds = (torch.Generator().manual_seed(seed + place) for place in range(n))
                with torch.no_grad():
                    graphs = [graph for each in seeds for graph in self.method.sample_set(each)]
            write_pyg_dataset(graphs, self.statement, folder)

        return self._export(root, write)

    def to_neo4j(self, root: str | Path, seed: int = 0) -> Path:
        """Write ``nodes.csv`` and ``relationships.csv`` for Neo4j's bulk import, and ``privacy.json``.

        Nodes have drawn rows, public attributes and classes as typed properties, relationships the
        total amount and the first time of drawn transfers.

        Args:
            root: New or empty folder.
            seed: Public seed, as for :meth:`sample`.

        Returns:
            The folder.

        Raises:
            CommandError: If the method draws no graphs, or if the folder is not empty or cannot be
                written.
        """
        return self._export(
            root, lambda folder: write_neo4j(self.sample(seed), self.statement, folder)
        )

    def __repr__(self) -> str:
        """Name the method, the guarantee, and what the release can do."""
        calls = "features, labels"
        if isinstance(self.method, Synthesizer):
            calls = "sample(seed), sample_many(n), to_networkx(seed), to_pandas(seed), plot(kind)"
            calls += ", edge_score(pairs)"
        elif isinstance(self.method, NodeClassifier):
            calls = "predict(attributes), predict_proba(attributes)"
        can = f"{calls}, save(folder)"
        return f"Release of {self._name}: {self._size()}\n{self.guarantee}\n{can}"

    def _repr_html_(self) -> str:
        """Show the guarantee and every read of the private graph in a notebook."""
        entries = self.statement.get("entries", [])
        return rendered(
            "notebook.html.jinja",
            head=f"Release of {self._name}: {self._size()}",
            guarantee=self.guarantee,
            reads=[(*_cells(entry), entry["relation"]) for entry in entries],
            has_relations="beside" in self.statement,
        )

    def _export(self, root: str | Path, write: Callable[[Path], None]) -> Path:
        """Write graphs into a new folder of another form."""
        self._check_draws()
        target = Path(root).expanduser()
        if "administrative" not in self.statement:
            way = "python -m lightning_dpg card RELEASE"
            raise CommandError(
                f"{self._name}: its privacy.json has no texts, which are made by {way}"
            )
        with self._writing(target):
            if target.exists() and (not target.is_dir() or any(target.iterdir())):
                raise CommandError(f"{target}: it is not empty\ngive a new folder")
            write_folder(target, write)
        return target

    @contextmanager
    def _writing(self, target: Path) -> Iterator[None]:
        """Say which folder cannot be written, and of a written one that it has no guarantee."""
        try:
            yield
        except OSError as error:  # which names the folder that becomes the target
            raise CommandError(
                f"{str(target)[:100]}: it cannot be written ({error.strerror or error})\n"
                "give a folder for which you have the right, on a disk with room"
            ) from error
        if self.statement.get("epsilon") == "inf":
            LOGGER.warning("%s: %s", target, NO_GUARANTEE)

    @property
    def _name(self) -> str:
        return type(self.method).__name__

    def _named(self, seed: int) -> Data:
        """Draw a graph whose names are whole numbers if all of them are written as such."""
        sample = self.sample(seed)
        names = sample.node_names
        if all(map(re.compile(r"0|-?[1-9]\d{0,17}").fullmatch, names)):
            sample.node_names = [*map(int, names)]
        return sample

    def _size(self) -> str:
        """Return the public size of the data, in words."""
        sizes = getattr(self.method, "sizes", None)
        if sizes is not None:
            return f"{len(sizes)} graphs of {int(sizes.sum())} nodes together"
        return f"one graph of {self.method.hparams['num_nodes']} nodes"

    def _check_draws(self) -> None:
        if isinstance(self.method, NodeClassifier):
            raise CommandError(
                f"{self._name} releases classes of nodes: it draws no graph and scores no pair\n"
                "read them: release.predict()"
            )
        if not isinstance(self.method, Synthesizer):
            raise CommandError(
                f"{self._name} releases features of graphs: it draws no graph and scores no pair\n"
                "read them: release.features, release.labels"
            )

    def _numbers(self, pairs: ArrayLike | Tensor) -> Tensor:
        """Return the numbers of the nodes of pairs, shape ``(P, 2)``."""
        array = np.asarray(pairs)
        if array.ndim != 2 or array.shape[1] != 2:
            raise CommandError(f"pairs must have the shape (P, 2), got {array.shape}")
        if array.dtype.kind in "UO":
            array = _numbers_of(array, self.method.node_names or ())
        if array.dtype.kind not in "iu":
            raise CommandError(f"pairs must be node numbers or node names, got {array.dtype}")
        last = self._num_nodes() - 1
        if array.size and not 0 <= array.min() <= array.max() <= last:
            odd = array[(array < 0) | (array > last)][0]
            raise CommandError(f"pairs: there is no node {odd}, the numbers go from 0 to {last}")
        return torch.as_tensor(array.astype(np.int64))

    def _num_nodes(self) -> int:
        sizes = getattr(self.method, "sizes", None)
        return int(self.method.hparams["num_nodes"] if sizes is None else sizes.sum())


def _matrix(attributes: ArrayLike | Tensor) -> Tensor:
    """Return attributes as a tensor of shape ``(P, F)``."""
    rows = torch.as_tensor(np.asarray(attributes, dtype=np.float32))
    if rows.dim() != 2:
        raise CommandError(f"attributes must have the shape (P, F), got {tuple(rows.shape)}")
    return rows


def refuse_foreign_folder(folder: Path) -> None:
    """Refuse to replace a folder that is no release.

    Args:
        folder: Place of a release that is to be written.

    Raises:
        CommandError: If it is a file, or a folder with other content than a release.
    """
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder}: a file, give a folder")
    is_release = any((folder / name).is_file() for name in _MARKS)
    if folder.is_dir() and any(folder.iterdir()) and not is_release:
        raise CommandError(
            f"{folder}: holds other files than a release, which are not replaced\ngive a new folder"
        )


def _copy(source: Path, target: Path) -> None:
    """Copy all files of a release, with checksums."""
    names = files_of(source)
    for name in (*names, *(name for name in sorted(UNSUMMED) if (source / name).is_file())):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, target / name)
    if not (target / SUMS).is_file():  # the reader has removed them
        write_sums(target)


def _set_attributes(graph: nx.Graph, sample: Data) -> None:
    """Copy attributes of nodes to networkx, in the form in which it reads GraphML."""
    attributes = attributes_of(sample)
    if attributes is None:
        return
    graph.graph["node_default"] = dict.fromkeys(attributes.names, 0.0)
    rows, columns = attributes.x.nonzero(as_tuple=True)
    cells = zip(rows.tolist(), columns.tolist(), attributes.x[rows, columns].tolist(), strict=True)
    for row, column, value in cells:
        graph.nodes[sample.node_names[row]][attributes.names[column]] = value
    if attributes.y is not None:
        for name, label in zip(sample.node_names, attributes.y.tolist(), strict=True):
            if label >= 0:
                graph.nodes[name][LABELS] = label


def _numbers_of(pairs: NDArray[Any], names: Sequence[str]) -> NDArray[np.int64]:
    """Replace node names by node numbers."""
    number = {name: place for place, name in enumerate(names)}
    if odd := [name for name in map(str, pairs.flatten()) if name not in number]:
        raise CommandError(f"pairs: the release has no node named {odd[0]!r}")
    numbers = [number[str(name)] for name in pairs.flatten()]
    return np.array(numbers, dtype=np.int64).reshape(pairs.shape)


def _cells(entry: dict[str, Any]) -> list[str]:
    """Return the texts of an entry of the statement: read, mechanism, cost and steps."""
    if entry["mechanism"] == "non_private":
        cost = "no protection"
    elif "noise_multiplier" in entry:
        cost = f"noise multiplier {digits_down(float(entry['noise_multiplier']), 4)}"
    else:
        cost = f"epsilon {digits_up(float(entry['epsilon']), 4)}"
        cost += f", delta {digits_up(float(entry['delta']), 4)}" if entry.get("delta") else ""
    return [entry["name"], entry["mechanism"], cost, str(entry["steps"])]
