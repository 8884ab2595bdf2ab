"""A program that ignores its `shutdown` ends no later than its own host would end it."""

from __future__ import annotations

import signal
import sys

import anyio
import pytest

from becket.dialects import find_dialect
from becket.host.starting.connect import connect_extension
from becket.host.timeouts import DEFAULT_TIMEOUTS

# Seconds from shutdown to the kill. Morphir's documents name none.
SYSTEMS = {"synaps": 1.0, "nexo": 3.0, "roder": 2.0, "cigen": 5.0}


@pytest.mark.parametrize(("dialect", "seconds"), SYSTEMS.items())
def test_the_sum_of_the_grace_times_is_that_of_the_system(dialect: str, seconds: float) -> None:
    found = find_dialect(dialect)
    limits = found.host_limits
    mapping = found.load_mapping() if found.load_mapping is not None else None
    shutdown_timeout = found.host_defaults.timeouts.get("shutdown", DEFAULT_TIMEOUTS.shutdown)
    has_shutdown = mapping is not None and mapping.encode_shutdown is not None

    together = (shutdown_timeout if has_shutdown else 0.0) + limits.stdin_grace + limits.term_grace

    assert together == pytest.approx(seconds)


STUBBORN = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
length = 0
while line := sys.stdin.buffer.readline().strip():
    length = int(line.split(b":")[1])
request = json.loads(sys.stdin.buffer.read(length))
body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"protocol_version": 1}}).encode()
sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
sys.stdout.buffer.flush()
while True:
    time.sleep(60)
"""


@pytest.mark.loops
@pytest.mark.process
async def test_a_program_that_ignores_everything_is_killed() -> None:
    with anyio.fail_after(60):
        async with connect_extension([sys.executable, "-c", STUBBORN], id="stubborn", dialect="synaps") as stubborn:
            process = stubborn.peer.process
    assert process is not None
    assert process.exit_code == -signal.SIGKILL
