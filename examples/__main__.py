"""Run the notebooks and store their outputs: ``python -m examples [NAME ...]``."""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from examples.running import executed, notebooks

DESCRIPTION = """\
Run the notebooks in scratch folders, and store them with their outputs. Without NAME all of them are
run; a NAME is the beginning of the name of a file, such as 1."""


def main() -> None:
    """Run the notebooks that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m examples", description=DESCRIPTION)
    parser.add_argument("names", nargs="*", metavar="NAME", help="notebooks to run")
    names = tuple(parser.parse_args().names)
    for path in notebooks():
        if path.name.startswith(names or ""):
            with TemporaryDirectory() as scratch:
                start = time.perf_counter()
                notebook = executed(path, Path(scratch))
                nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
                print(f"{path.name}: {time.perf_counter() - start:.1f} s")


main()
