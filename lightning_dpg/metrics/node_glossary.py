"""Meaning of the scores of node classification."""

from lightning_dpg.metrics.query import Query

OF_NODES = (
    Query(
        "node_accuracy",
        "accuracy of classes",
        "Share of test nodes whose class a network predicts from public attributes and from the edges "
        "on which it was trained, which are those of the release.",
        "higher",
        "labels",
    ),
    Query(
        "node_macro_f1",
        "macro F1",
        "F1 score of the same predictions, mean of the classes.",
        "higher",
        "labels",
    ),
    Query(
        "node_accuracy_on_real_edges",
        "accuracy on real edges",
        "Share of test nodes whose class the same network predicts from the edges of the real graph, "
        "which only their owner can do.",
        "higher",
        "labels",
    ),
)
