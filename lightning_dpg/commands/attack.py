"""``attack``: success of an attacker on a release, compared with a release without the links."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lightning_dpg.errors import CommandError
from lightning_dpg.graph.kind import Kind
from lightning_dpg.running.early_files import refuse_missing_graph, refuse_missing_published
from lightning_dpg.running.settings import find_config

if TYPE_CHECKING:
    from lightning_dpg.release.release import Release


def attack(
    real: str,
    published: Annotated[list[str], "RELEASE|SYNTHETIC"],
    *,
    baseline_config: str | None = None,
    method: str | None = None,
    json: Path | None = None,
    undirected: bool = False,
    kind: Kind | None = None,
    book: str | None = None,
    no_book: bool = False,
) -> None:
    """Attack a release: look for relations and names in it.

    Reads the private graph, to know which guesses are right: the numbers are not private.

    Link stealing: the targets are a public random choice of 5 % of the real edges, at most 1,000. The
    attack separates them from ten times as many pairs without an edge: any pairs, and pairs whose ends
    have the degrees of the targets. The first column is the attack on the release. The second column is
    the same attack on the same method, fitted without the targets. The difference is due to the release.
    Attributes of nodes in a release are public: both columns have them, and attributes alone are an attack
    without a release.
    Re-identification: names are removed, and the attacker looks for nodes by what it knows of them.
    Link prediction (Yang et al., 2021, figure 3): the method is fitted on 80 % of the edges, nodes are
    identified by their degrees, and a spectral predictor predicts the other 20 %.

    A release is fitted again by the config.yaml of its run or by --baseline-config. Without either, random
    graphs of the published degrees stand in for the second column: what the degrees alone give away.

    A directed or bipartite graph is attacked as such: targets and other pairs are ordered pairs, or pairs
    between the sides. Common neighbors, names and link prediction look at it without directions.

    Of a method of sets of graphs REAL is the name of a set, and link prediction all that is tried.

    Args:
        real: Name of a graph or path of a file.
        published: Folder of a release or of a run, or one or more synthetic graphs.
        baseline_config: Configuration to fit again with.
        method: Class of the release's method as MODULE.CLASS, if it is not shipped; it is code, and runs.
        json: File for the numbers.
        undirected: See :func:`lightning_dpg.auditing.attacks.attack`.
        kind: See :func:`lightning_dpg.auditing.attacks.attack`.
        book: See :func:`lightning_dpg.auditing.attacks.attack`.
        no_book: Log it in no budget book.
    """
    if json is not None and not json.absolute().parent.is_dir():
        raise CommandError(f"--json {json}: its folder does not exist")
    if baseline_config is not None:
        find_config(baseline_config)
    refuse_missing_graph(real)
    for name in published:
        refuse_missing_published(name)
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.auditing.attacks import attack_published
    from lightning_dpg.release.reader import imported, open_release

    target: list[str] | Release = published
    if method is not None:
        target = open_release(Path(published[0]), imported(method))
    report = attack_published(
        real,
        target,
        baseline=baseline_config,
        undirected=undirected,
        kind=kind,
        book="none" if no_book else book,
    )
    if json is not None:
        json.write_text(report.to_json(), encoding="utf-8")
    print(report)
