"""A plugin of pytest that runs all tests several times."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=1, help="how often each test runs")


@pytest.fixture
def round_of_tests(request: pytest.FixtureRequest) -> int:
    """The number of the round. Each one has tests of its own: pytest keeps the fixtures of one that follows itself."""
    number: int = request.param
    return number


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    rounds = metafunc.config.getoption("--rounds")
    if rounds > 1:
        metafunc.fixturenames.append("round_of_tests")
        metafunc.parametrize("round_of_tests", range(1, rounds + 1), indirect=True, ids="round {}".format)
