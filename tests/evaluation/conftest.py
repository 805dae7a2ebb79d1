"""Fixtures of the pages, shared with the tests of the benchmark."""

from tests.apps.bench.conftest import browser, probed  # noqa: F401  # fixtures
