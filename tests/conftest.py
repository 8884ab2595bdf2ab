"""What every test stands on: which event loop an async test runs on, and how hypothesis searches."""

from __future__ import annotations

import pytest
from hypothesis import settings

ASYNCIO = pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio")
TRIO = pytest.param(("trio", {}), id="trio")
UVLOOP = pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop")

# How long one example takes says more about the machine than about the code; the test's own timeout bounds the sum.
settings.register_profile("becket", deadline=None, print_blob=True)
settings.load_profile("becket")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs async tests on asyncio, and those marked `loops` on trio and uvloop too."""
    if "anyio_backend" in metafunc.fixturenames:
        on_all = metafunc.definition.get_closest_marker("loops") is not None
        metafunc.parametrize("anyio_backend", [ASYNCIO, TRIO, UVLOOP] if on_all else [ASYNCIO], indirect=True)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    """Returns the loop that anyio's plugin runs this test on, as `pytest_generate_tests` chose it."""
    backend: tuple[str, dict[str, object]] = request.param
    return backend


# The check for leaks belongs here: one autouse fixture that asks `becket.testing`, after each test, whether a task,
# a thread, a descriptor or a child process has outlived it.
