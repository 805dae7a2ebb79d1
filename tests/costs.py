"""What each test costs in CPU time; tests that cost more than ``MOST`` are slow.

``python -m pytest -n 0 -m "slow or not slow" --costs FILE FOLDER`` measures the tests of whole files anew,
writes all costs to ``FILE`` and brings ``slow_tests.txt`` up to date.
"""

from collections import defaultdict
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import pytest

LIST = Path(__file__).with_name("slow_tests.txt")
MOST = 0.2  # CPU seconds
# What the default suite holds whatever it costs: what README shows, arrows between rooms, and
# sensitivities and ledgers of all methods, by which planted bugs are found.
STAY = {
    "tests/test_readme.py::test_the_python_of_the_readme_runs",
    "tests/test_main.py::test_every_config_fits_and_predicts[bter]",
    "tests/test_architecture.py::test_imports_follow_the_design",
    "tests/test_private_methods.py::test_ledger_of_a_run_is_the_list_written_by_hand",
    "tests/test_private_methods.py::test_one_edge_moves_what_mechanisms_are_given_by_their_sensitivity",
    "tests/test_private_methods.py::test_one_row_moves_what_mechanisms_are_given_by_their_sensitivity",
}


def pytest_addoption(parser):
    parser.addoption("--costs", metavar="FILE", help="write what tests cost, update slow_tests.txt")


def pytest_configure(config):
    if config.option.costs:
        config.pluginmanager.register(Costs(), "costs")


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items):
    slow = set(LIST.read_text().splitlines())
    for item in items:
        if not slow.isdisjoint(names_of(item)):
            item.add_marker(pytest.mark.slow)


def names_of(item):
    """Names of a test and of its function."""
    return item.nodeid, item.nodeid.partition("[")[0]


def spent():
    """CPU seconds of this process and of those that it has waited for."""
    return sum(
        used.ru_utime + used.ru_stime for used in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN))
    )


class Costs:
    """CPU seconds of tests; what tests share is divided equally among those that ask for it."""

    def __init__(self):
        self.tests = {}
        self.shared = []  # seconds, name of a fixture, node whose tests share it

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        before, known = spent(), len(self.shared)
        try:
            return (yield)
        finally:
            self.tests[item] = spent() - before - sum(each[0] for each in self.shared[known:])

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        before = spent()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.shared.append((spent() - before, fixturedef.argname, request.node.nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        self.items = list(items)  # also those that are left out
        return (yield)

    def pytest_sessionfinish(self, session):
        costs = dict(self.tests)
        for seconds, fixture, node in self.shared:
            users = [x for x in costs if fixture in x.fixturenames and x.nodeid.startswith(node)]
            for user in users:
                costs[user] += seconds / len(users)
        rows = sorted((-seconds, item.nodeid) for item, seconds in costs.items())
        rows = [f"{-seconds:.3f} {name}\n" for seconds, name in rows]
        Path(session.config.option.costs).write_text("".join(rows))
        functions = defaultdict(dict)
        for item in self.items:
            name, function = names_of(item)
            slow = costs[item] > MOST if item in costs else bool(item.get_closest_marker("slow"))
            functions[function][name] = slow and STAY.isdisjoint((name, function))
        rows = [x for x in LIST.read_text().splitlines() if x.partition("[")[0] not in functions]
        for function, members in functions.items():
            slow = [name for name, is_slow in members.items() if is_slow]
            rows += [function] if len(slow) == len(members) else slow
        LIST.write_text("".join(f"{name}\n" for name in sorted(rows)))
