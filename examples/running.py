"""Runs of the notebooks in a scratch folder, by the Python that runs this code."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

FOLDER = Path(__file__).parent
SECONDS = 600


def notebooks() -> list[Path]:
    """Paths of all notebooks, in the order of their numbers."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path, scratch: Path) -> NotebookNode:
    """Run a notebook, and return it with its outputs; the file stays as it is.

    Args:
        path: The notebook.
        scratch: Empty folder, in which it runs and which gets all files.

    Raises:
        CellExecutionError: If a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with TemporaryDirectory() as private:
        settings = Config()
        settings.KernelSpecManager.kernel_dirs = []  # the kernel of this Python
        settings.AsyncKernelManager.transport = "ipc"  # no port that other users can reach
        settings.AsyncKernelManager.connection_file = f"{private}/kernel.json"
        client = NotebookClient(
            notebook,
            config=settings,  # a kernel manager of our own would leave the kernel running
            kernel_name="python3",
            timeout=SECONDS,
            resources={"metadata": {"path": str(scratch)}},
            record_timing=False,
            coalesce_streams=True,
        )
        client.execute(env=_environment(private))
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "text" in output:  # a shell command has the line ends of a terminal
                output["text"] = output["text"].replace("\r\n", "\n")
    notebook.metadata.language_info = {"name": "python"}  # no version of Python
    return notebook


def _environment(private: str) -> dict[str, str]:
    """Environment of the kernel: this Python, this package, and nothing of the user's home."""
    places = {"PATH": Path(sys.executable).parent, "PYTHONPATH": FOLDER.parent}
    first = {
        name: os.pathsep.join(filter(None, (str(place), os.environ.get(name))))
        for name, place in places.items()
    }
    home = {name: private for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")}
    return os.environ | home | first
