"""Publish and learn from graphs under differential privacy, with PyTorch Lightning."""

__version__ = "0.1.0"
