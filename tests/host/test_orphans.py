"""No process outlives its host by more than a moment, whatever it does and however the host ends.

Each host has a child of every kind; `make prove` ends two hundred of them."""

from __future__ import annotations

import pytest
from tests.proofs.orphans import ENDS, kill_host

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(120)]


LOOPS = ("asyncio", "trio", "uvloop", "asyncio")


@pytest.mark.parametrize(("end", "loop"), list(zip(ENDS, LOOPS, strict=True)))
def test_no_process_that_a_host_has_started_outlives_it(end: str, loop: str) -> None:
    assert kill_host(end, loop, bound=20).survivors == ()
