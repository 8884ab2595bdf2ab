"""A program in a pseudo-terminal: a test types, and reads the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from codecs import getincrementaldecoder
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType

from tests.cli.screens import Picture

CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]|\x1b[=>78]|\r")
PATIENCE = 60.0  # seconds: far more than any command takes
CTRL_C = "\x03"
CTRL_D = "\x04"
CTRL_Z = "\x1a"
# The terminal that a program runs in must be its controlling one for Ctrl-C to reach it; and a shell that runs tests in
# the background ignores it.
TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """Runs a program: `with Terminal(command) as terminal: terminal.expect(">")`. It is killed if it has not ended."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        columns: int = 100,
        rows: int = 40,
        **variables: str,
    ) -> None:
        self.raw = ""
        self.picture = Picture(columns, rows)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        foreign = ("NO_COLOR", "COLUMNS", "LINES")  # of the terminal in which the tests run
        environment = {name: value for name, value in os.environ.items() if name not in foreign}
        self._process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={**environment, "TERM": "xterm-256color", **variables},
            start_new_session=True,
        )
        os.close(slave)
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")  # a read may end within a character
        self._seen = 0
        self._has_ended = False

    @property
    def text(self) -> str:
        """All that was written so far, without what moves the cursor and colours."""
        return CONTROL.sub("", self.raw)

    def type(self, keys: str) -> None:
        """Presses keys."""
        os.write(self._master, keys.encode())

    def enter(self, line: str) -> None:
        """Types a line."""
        self.type(f"{line}\n")

    def expect(self, text: str) -> None:
        """Waits until this is written, later than what was expected before."""
        deadline = monotonic() + PATIENCE
        while True:
            found = self.text.find(text, self._seen)
            if found >= 0:
                self._seen = found + len(text)
                return
            assert not self._has_ended, f"it has ended without writing {text!r}:\n{self.text}"
            assert monotonic() < deadline, f"it has not written {text!r} in time:\n{self.text}"
            self._read(deadline)

    def expect_seen(self, snapshot: str) -> None:
        """Waits until the last lines on the screen are those behind `|`; `~` stands for anything, also for lines."""
        lines = [line.strip().removeprefix("|") for line in snapshot.strip().split("\n")]
        pattern = re.compile("(?s)(?:.*\n)?" + "\n".join(".*".join(map(re.escape, line.split("~"))) for line in lines))
        deadline = monotonic() + PATIENCE
        while not pattern.fullmatch("\n".join(self.picture.seen)):
            seen = "\n".join(self.picture.seen)
            assert not self._has_ended, f"it has ended, and the screen is:\n{seen}"
            assert monotonic() < deadline, f"in time there was only this on the screen:\n{seen}"
            self._read(deadline)

    @property
    def has_echo(self) -> bool:
        """Whether the terminal shows what is typed and waits for whole lines, as a shell leaves it."""
        modes = termios.tcgetattr(self._master)[3]
        return modes & (termios.ECHO | termios.ICANON) == termios.ECHO | termios.ICANON

    def end(self) -> int:
        """Waits until the program has ended and returns its exit code."""
        deadline = monotonic() + PATIENCE
        while not self._has_ended and monotonic() < deadline:
            self._read(deadline)
        return self._process.wait(max(0.1, deadline - monotonic()))

    def send_signal(self, number: int) -> None:
        """Sends the program a signal."""
        self._process.send_signal(number)

    def _read(self, deadline: float) -> None:
        if not select.select([self._master], [], [], max(0.0, deadline - monotonic()))[0]:
            return
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # what Linux reports when no process has the other end open
            data = b""
        self._has_ended = not data
        text = self._decoder.decode(data, final=self._has_ended)
        self.raw += text
        self.picture.write(text)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)
