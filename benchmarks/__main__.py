"""Run one benchmark: ``python -m benchmarks NAME [options]``."""

import importlib
import sys

NAMES = (
    "assembly",
    "attributed",
    "attributes",
    "book",
    "book_filters",
    "communities",
    "critic",
    "generator",
    "graphlets",
    "gromov",
    "large_classes",
    "large_graphs",
    "large_links",
    "large_rows",
    "link_methods",
    "links",
    "local_labels",
    "local_privacy",
    "memory",
    "node_blocks",
    "node_classification",
    "node_degrees",
    "node_learning",
    "node_privacy",
    "oja",
    "private_labels",
    "sampling",
    "shape",
    "startup",
    "statistics",
    "transfers",
)

if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
    sys.exit(f"usage: python -m benchmarks {{{','.join(NAMES)}}} [options]")
importlib.import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])
