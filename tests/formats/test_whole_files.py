"""A full disk leaves nothing half-written, and the error names what is needed."""

import errno

import pytest
import torch

from lightning_dpg.formats.io import GraphFormatError, read, read_graph, write_graph
from lightning_dpg.formats.whole_files import whole_file
from lightning_dpg.graph.graph import make_graph

GRAPH = make_graph(torch.combinations(torch.arange(30)), 30)


@pytest.mark.parametrize("older", [None, b"older"])
def test_a_full_disk_leaves_what_was_there_before(older, tmp_path):
    path = tmp_path / "g.npz"
    if older is not None:
        path.write_bytes(older)
    said = r"g\.npz: the disk is full: it needs more than 5 bytes, [0-9,]+ are free"
    with pytest.raises(OSError, match=said), whole_file(path) as scratch:
        scratch.write_bytes(b"12345")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == ([] if older is None else [older])


def test_other_errors_stay(tmp_path):
    with pytest.raises(OSError, match="Input/output error"), whole_file(tmp_path / "g") as _:
        raise OSError(errno.EIO, "Input/output error")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.99])
def test_an_archive_that_is_cut_short_is_refused(share, tmp_path):
    path = tmp_path / "g.npz"
    write_graph(GRAPH, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(GraphFormatError, match=r"g\.npz: not a graph") as caught:
        read_graph(path)
    assert str(caught.value).count("\n") < 5


def test_an_archive_with_flipped_bytes_is_refused_or_read_as_it_was(tmp_path):
    path = tmp_path / "g.npz"
    write_graph(GRAPH, path)
    content = path.read_bytes()
    refused = 0
    for place in range(0, len(content), 29):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            assert torch.equal(read(path).graph.edge_index, GRAPH.edge_index)
        except GraphFormatError as error:
            assert str(error).count("\n") < 5
            refused += 1
    assert refused > 10
