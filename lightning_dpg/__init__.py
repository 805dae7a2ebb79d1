"""Publish and learn from graphs under differential privacy, with PyTorch Lightning."""

from pathlib import Path

__version__ = "0.1.0"

_root = Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").is_file() and (_root / "datamodules").is_dir():
    # In a source checkout datamodules/, callbacks/ and conf/ lie beside this package, not inside.
    __path__.append(str(_root))
