"""Publish and learn from graphs under differential privacy, with PyTorch Lightning."""

__version__ = "0.2.0"
