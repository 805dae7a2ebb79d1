"""Fixtures of the pages, shared with the tests of the benchmark."""

from tests.benchmark.conftest import browser, probed  # noqa: F401  # fixtures
