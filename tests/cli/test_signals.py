"""A signal ends what a command waits for, also one that does not interrupt the wait of the main thread."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.conformance.mutants.mutants import program

from becket.conformance import Role

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see that a thread waits"),
]

PATIENCE = 60
SILENT = program("native", Role.EXTENSION, {"ignore": ['{"method": "becket.conform/no_such_method"}']})

# Another thread receives the signal. The main thread is the one that handles it, and does not notice while it waits.
START = """
import signal, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
"""

RELAY = """
import io, sys
from becket.cli.support.relay import relay
child = (
    "import signal; signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM}); "
    "print('ready', flush=True); signal.pause()"
)
code = relay([sys.executable, "-c", child], io.BytesIO())
"""

CONFORM = f"""
from becket.conformance import ProcessLink, Role, load_suite, run_cases, select_cases
from becket.conformance.runner import Offers
suite = load_suite("native")
def open_link():
    link = ProcessLink({SILENT!r})
    print("ready", flush=True)
    return link
try:
    cases = select_cases(suite.cases, Role.EXTENSION, ["N-FR-001"])
    run_cases(suite, cases, open_link, offers=Offers(frozenset()), timeout=3600)
except KeyboardInterrupt:
    pass
"""


@pytest.mark.parametrize(
    ("code", "number"),
    [(RELAY, signal.SIGTERM), (CONFORM, signal.SIGINT)],
    ids=["a recorded program", "a conformance case"],
)
def test_a_signal_that_another_thread_receives_ends_the_wait(code: str, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", START + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as running:
        assert running.stdout is not None
        try:
            assert running.stdout.readline() == "ready\n"
            wait_until_asleep(running.pid)
            running.send_signal(number)
            assert running.wait(PATIENCE) == 0
        finally:
            running.kill()


def wait_until_asleep(pid: int) -> None:
    """Returns when the main thread of a process waits for something."""
    end = monotonic() + PATIENCE
    while Path(f"/proc/{pid}/task/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "S":
        assert monotonic() < end
        sleep(0.01)
