"""``attack``: success of an attacker on a release, compared with a release without the links."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lightning_dpg.outcome import Outcome
from lightning_dpg.progress import following
from lightning_dpg.run.configurations import find_config
from lightning_dpg.run.source import Reading, refuse_missing_inputs

if TYPE_CHECKING:
    from lightning_dpg.release.release import Release


def attack(
    real: Annotated[str, "RUN|REAL"],
    published: Annotated[list[str] | None, "RELEASE|SYNTHETIC"] = None,
    *,
    baseline_config: str | None = None,
    method: str | None = None,
    reading: Reading = Reading(),
) -> Outcome:
    """Attack a release: look for relations and names in it.

    The folder of a RUN is enough: its config.yaml says where the real graph is, and how it is read.

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

    Of a release with drawn rows, the private columns of each node are guessed: from the row beside its name;
    from its degree, by the released tables; and from the values of all its neighbors, by the released mixing.
    In brackets stands the prior, the share of the nodes with the most frequent value of the release.

    A release is fitted again by the config.yaml of its run or by --baseline-config. Without either, random
    graphs of the published degrees stand in for the second column: what the degrees alone give away.

    A directed or bipartite graph is attacked as such: targets and other pairs are ordered pairs, or pairs
    between the sides. Common neighbors, names and link prediction look at it without directions.

    A release of classes of nodes is attacked by the similarity of classes (He et al., 2021) and by the
    influence of attributes of one node on the class of another (Wu et al., 2022); it has no names and no
    graphs. The report has the difference of the AUC to the same attack by public attributes.

    Of a method of sets of graphs REAL is the name of a set, and link prediction all that is tried.

    Args:
        real: Folder of a run, or the real graph in any form that ``fit`` takes.
        published: Folder of a release or of a run, or one or more synthetic graphs.
        baseline_config: Configuration to fit again with.
        method: Class of the release's method as MODULE.CLASS, if it is not shipped; it is code, and runs.
        reading: See :class:`lightning_dpg.run.source.Reading`.

    Example:
        python -m lightning_dpg attack runs/chung_lu/version_0
    """
    if baseline_config is not None:
        find_config(baseline_config)
    refuse_missing_inputs(real, published, reading, "attack")
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.apps.audit.attacks import attack_published
    from lightning_dpg.release.reader import imported, open_release
    from lightning_dpg.run.data import data_of_run, real_graph

    original = real_graph(real, reading.given()) if published else data_of_run(real)
    target: list[str] | Release = published or [real]
    if method is not None:
        target = open_release(Path((published or [real])[0]), imported(method))
    with following("attack", "attacks"):
        report = attack_published(
            original,
            target,
            baseline=baseline_config,
            undirected=reading.undirected,
            kind=reading.kind,
        )
    return Outcome([report.text()], report.values)
