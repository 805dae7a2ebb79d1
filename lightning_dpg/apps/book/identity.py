"""Keyed fingerprints, by which a book recognizes a data set.

A fingerprint is HMAC-SHA-256 of canonical content under a key of 256 random bits that stays in the
book. Without the key it looks like random bits, and confirms no guess of the data. With the book, it
confirms a guess of the *whole* content: the book is as private as the data.
"""

import hashlib
import hmac
from typing import NamedTuple

from lightning_dpg.interfaces import Identity
from lightning_dpg.privacy.events import RECORDS, Relation


class Fingerprint(NamedTuple):
    """Keyed digests of a data set.

    Attributes:
        edges: Of its edges by the names of their nodes, in no order; equal edges are equal data.
        nodes: Of the names of all nodes, in no order.
        record: One edge, in words (public).
        rows: Of the private columns of the nodes, by their names; empty without private columns.
        links: Of the edges alone, where ``edges`` is that of transfers; empty otherwise.
    """

    edges: str
    nodes: str
    record: str = "undirected edge"
    rows: str = ""
    links: str = ""


def fingerprint(key: str, content: Identity) -> Fingerprint:
    """Compute the fingerprint of data.

    Args:
        key: Secret of a book, as hexadecimal digits.
        content: Canonical content (private).
    """
    return Fingerprint(
        edges=_keyed(key, b"edges", content.edges),
        nodes=_keyed(key, b"nodes", content.nodes),
        record=content.record,
        rows=_keyed(key, b"rows", content.rows) if content.rows else "",
        links=_keyed(key, b"edges", content.links) if content.links else "",
    )


def key_digest(key: str) -> str:
    """Digest by which a book finds that its key was exchanged; it confirms no guess of the key.

    Args:
        key: Secret of a book, as hexadecimal digits.
    """
    return _keyed(key, b"key", b"")


def protected_unit(relation: Relation, record: str, max_edges: int | None = None) -> str:
    """Describe the record that a total protects.

    Args:
        relation: Neighboring relation of the total.
        record: One edge of the data, in words.
        max_edges: Number of edges of one node that are hidden together, if the relation has one.
    """
    if relation is Relation.LOCAL_GRAPH:
        return "graph of a client"
    if relation in (Relation.ATTRIBUTES, Relation.TRANSFER):
        return RECORDS[relation]
    if relation is Relation.EDGES_OF_NODE:
        return f"set of at most {max_edges} {record.replace('edge', 'edges')} of one node"
    return f"every {record} of a node" if relation is Relation.NODE else record


def _keyed(key: str, purpose: bytes, content: bytes) -> str:
    return hmac.new(bytes.fromhex(key), purpose + b"\0" + content, hashlib.sha256).hexdigest()
