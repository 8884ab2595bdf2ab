"""becket as a host without an event loop."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from becket.blocking import BlockingPeer, connect_process
from benchmarks.hosting.blocking import run_host
from benchmarks.workloads import EVENT_TEXT, MESSAGE_TEXT
from messages import Count, Echo, Tick, Usage


class BecketBlocking:
    def __init__(self, peer: BlockingPeer) -> None:
        self.peer = peer

        @peer.handle("host/echo")
        def host_echo(params: Echo) -> Echo:
            return params

    def handshake(self) -> object:
        return self.peer.call("initialize")

    def echo(self, text: str) -> Echo:
        response: Echo = self.peer.call("echo", Echo(text), returns=Echo)
        return response

    def echo_many(self, text: str, calls: int, in_flight: int) -> None:
        message = Echo(text)
        begin = self.peer.begin
        waiting = deque(begin("echo", message, returns=Echo) for _ in range(in_flight))
        for _ in range(calls - in_flight):
            waiting.popleft().result()
            waiting.append(begin("echo", message, returns=Echo))
        for call in waiting:
            call.result()

    def text_of(self, response: Echo) -> str:
        return response.text

    def count(self, events: int) -> int:
        total = 0

        def on_tick(tick: Tick) -> None:
            nonlocal total
            total += tick.seq

        self.peer.call("count", Count(events, EVENT_TEXT), on={"tick": on_tick})
        return total

    def drive(self, calls: int) -> object:
        return self.peer.call("drive", Count(calls, MESSAGE_TEXT))

    def usage(self) -> Any:
        usage = self.peer.call("usage", returns=Usage)
        return {"pid": usage.pid, "cpu": usage.cpu}


@contextmanager
def connect(command: list[str]) -> Iterator[BecketBlocking]:
    with connect_process(command, env={"PYTHONPATH": os.environ["PYTHONPATH"]}) as peer:
        yield BecketBlocking(peer)


run_host(connect)
