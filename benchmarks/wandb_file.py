"""Curves in the file that Weights & Biases writes offline."""

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

_BLOCK = 32768


def records(path: Path) -> Iterator[bytes]:
    """Yield the records of a file: a log of blocks, where a piece has checksum, length and kind."""
    content = path.read_bytes()
    assert content[:4] == b":W&B"
    place, record = 7, b""
    while len(content) - place >= 7:
        room = _BLOCK - place % _BLOCK
        if room < 7:  # too little for a head: the rest of the block is empty
            place += room
            continue
        checksum, length, kind = struct.unpack_from("<IHB", content, place)
        if kind == 0:
            place += room
            continue
        piece = content[place + 7 : place + 7 + length]
        assert zlib.crc32(bytes([kind]) + piece) == checksum
        place += 7 + length
        record = piece if kind in (1, 2) else record + piece  # whole, first, middle, last
        if kind in (1, 4):
            yield record


def history(path: Path) -> Iterator[dict[str, float]]:
    """Yield what was logged, by the names of the curves, one mapping per step."""
    from wandb.proto import wandb_internal_pb2

    for content in records(path):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(content)
        if record.WhichOneof("record_type") == "history":
            yield {
                "/".join(item.nested_key) or item.key: json.loads(item.value_json)
                for item in record.history.item
            }
