"""Stops a host when its program gets a signal to end, and then lets the signal do what it would have done."""

from __future__ import annotations

import signal
from _thread import start_new_thread
from collections.abc import Callable, Iterable
from threading import main_thread
from types import FrameType
from typing import Any

from becket.errors import LocalProtocolError

__all__ = ["STOP_SIGNALS", "StopSignals", "without_ignored"]

STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def without_ignored(signals: Iterable[signal.Signals]) -> tuple[signal.Signals, ...]:
    """Returns those signals that this program does not ignore; `nohup` has it ignore SIGHUP, and so it stays."""
    return tuple(number for number in signals if signal.getsignal(number) not in (signal.SIG_IGN, None))


class StopSignals:
    """Signals that stop a host. The first one calls `stop`; a second one does at once what it did before."""

    def __init__(self, signals: Iterable[signal.Signals], stop: Callable[[], object]) -> None:
        """Begins to receive them.

        Raises:
            LocalProtocolError: this is not the main thread, which alone can.
        """
        self._stop = stop
        self._received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}
        for number in without_ignored(signals):
            try:
                self._before[number] = signal.signal(number, self._receive)
            except ValueError:
                raise LocalProtocolError("signals are received in the main thread: call this there") from None

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._received = signal.Signals(number)
        self.restore()
        self._stop()

    def restore(self) -> None:
        """Puts back what was there before, where nothing else has come in its place."""
        for number, before in self._before.items():
            if signal.getsignal(number) == self._receive:
                signal.signal(number, before)
        self._before.clear()

    def finish(self) -> None:
        """Puts back what was there before; a signal that was received takes its effect now, as if it came anew.

        From another thread, so that what a function of the program raises is not raised in the task that closes."""
        self.restore()
        if self._received is not None:
            start_new_thread(signal.pthread_kill, (main_thread().ident or 0, int(self._received)))
