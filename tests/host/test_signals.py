"""A host that gets a signal: its extensions end in order, then the signal has its usual effect."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from becket.errors import LocalProtocolError
from becket.host import Host

pytestmark = pytest.mark.process

PROGRAM = """
import os, signal, sys
import anyio
from becket.host import Host

{before}

async def main():
    async with Host([{root!r}], data=None) as host:
        await host.ready("notes")
        host.stop_on_signals()
        {then}
        print("ready", flush=True)
        await anyio.sleep_forever()

options = {{"use_uvloop": True}} if {loop!r} == "uvloop" else {{}}
anyio.run(main, backend="trio" if {loop!r} == "trio" else "asyncio", backend_options=options)
"""
NOTES = """
import os, sys
from becket import ExtensionServer

class Notes(ExtensionServer):
    id, version = "notes", "1.0.0"

    def on_stop(self):
        with open({stopped!r}, "w") as file:
            file.write("in order")

Notes().run()
"""


@contextmanager
def host_in(folder: Path, loop: str, before: str = "", then: str = "pass") -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program with a host that stops on signals, and yields it once its extension runs."""
    extension = folder / "extensions" / "notes"
    extension.mkdir(parents=True)
    command = f'command = ["{sys.executable}", "main.py"]'
    (extension / "becket.toml").write_text(f'id = "notes"\nversion = "1.0.0"\n{command}\n', encoding="utf-8")
    code = textwrap.dedent(NOTES).format(stopped=str(folder / "stopped"))
    (extension / "main.py").write_text(code, encoding="utf-8")
    program = PROGRAM.format(root=str(folder / "extensions"), loop=loop, before=before, then=then)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def read_stdout(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.read()


@pytest.mark.parametrize(  # each loop, and the other signal on one of them
    ("number", "loop"),
    [(signal.SIGTERM, "asyncio"), (signal.SIGHUP, "asyncio"), (signal.SIGTERM, "trio"), (signal.SIGTERM, "uvloop")],
)
def test_the_extensions_end_in_order_and_then_the_signal_ends_the_program(
    tmp_path: Path, loop: str, number: signal.Signals
) -> None:
    with host_in(tmp_path, loop) as process:
        process.send_signal(number)
        assert process.wait(60) == -number
    assert (tmp_path / "stopped").read_text(encoding="utf-8") == "in order"


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_function_of_the_program_for_the_signal_is_called_when_the_host_is_closed(tmp_path: Path, loop: str) -> None:
    before = f"""
def take(number, frame):
    print(open({str(tmp_path / "stopped")!r}).read(), flush=True)
    os._exit(7)

signal.signal(signal.SIGTERM, take)
"""
    with host_in(tmp_path, loop, before) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 7
        assert read_stdout(process) == b"in order\n"


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path, loop: str) -> None:
    check = "signal.raise_signal(signal.SIGHUP); assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN"
    with host_in(tmp_path, loop, "signal.signal(signal.SIGHUP, signal.SIG_IGN)", check) as process:
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM


@pytest.mark.loops
async def test_earlier_signal_handlers_are_restored_when_the_host_closes() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with anyio.fail_after(60):
        async with Host(data=None) as host:
            host.stop_on_signals()
            host.stop_on_signals()
            assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.loops
async def test_signal_handling_is_refused_before_the_start_and_in_another_thread() -> None:
    with pytest.raises(LocalProtocolError, match="not started"):
        Host(data=None).stop_on_signals()
    errors: list[Any] = []
    with anyio.fail_after(60):
        async with Host(data=None) as host:

            def stop() -> None:
                try:
                    host.stop_on_signals()
                except LocalProtocolError as error:
                    errors.append(str(error))

            thread = threading.Thread(target=stop)
            thread.start()
            await anyio.to_thread.run_sync(thread.join)
    assert ["main thread" in error for error in errors] == [True]
