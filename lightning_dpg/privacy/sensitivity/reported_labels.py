"""Number of reports of labels that depend on the private columns of one node."""


def reported_label_sensitivity() -> int:
    """Number of labels that change when the private columns of one node are exchanged: 1.

    A node has one label, which is reported once. It is public which nodes have one, so that
    neighbors have labels of the same nodes. What is computed from reports reads no label.
    """
    return 1
