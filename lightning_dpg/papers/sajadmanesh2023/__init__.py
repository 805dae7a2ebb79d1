"""Sajadmanesh et al., 2023: networks on noisy sums over neighbors (GAP)."""
