"""Stops a host when its program gets a signal to end, and then lets the signal have its usual effect."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from functools import partial
from threading import main_thread
from types import FrameType
from typing import Any

from becket._threads import start_daemon_thread
from becket.errors import LocalProtocolError

__all__ = ["STOP_SIGNALS", "StopSignals", "without_ignored"]

STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def without_ignored(signals: Iterable[signal.Signals]) -> tuple[signal.Signals, ...]:
    """Returns those signals that this program does not ignore; under `nohup` SIGHUP stays ignored."""
    return tuple(number for number in signals if signal.getsignal(number) not in (signal.SIG_IGN, None))


class StopSignals:
    """Signals that stop a host. The first one calls `stop`; a second one has its previous effect at once."""

    def __init__(self, signals: Iterable[signal.Signals], stop: Callable[[], object]) -> None:
        """Installs the handlers.

        Raises:
            LocalProtocolError: this is not the main thread.
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
        """Restores the previous handlers, unless others were installed since."""
        for number, before in self._before.items():
            if signal.getsignal(number) == self._receive:
                signal.signal(number, before)
        self._before.clear()

    def finish(self) -> None:
        """Restores the previous handlers; a received signal then has its previous effect.

        It is raised from another thread, so that an exception of the program's own handler does not end the closing
        task."""
        self.restore()
        if self._received is not None:
            start_daemon_thread(partial(signal.pthread_kill, main_thread().ident or 0, int(self._received)))
