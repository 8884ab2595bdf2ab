"""The blocking floor as a host."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.hosting.blocking import run_host
from benchmarks.workloads import EVENT_TEXT, MESSAGE_TEXT
from blocking_peer import BlockingPeer
from endpoint import Count, Echo, Tick, Usage


class Floor:
    def __init__(self, peer: BlockingPeer) -> None:
        self.peer = peer
        self.total = 0
        peer.handle("tick", Tick, self.on_tick)
        peer.handle("host/echo", Echo, lambda params: params)

    def on_tick(self, tick: Tick) -> None:
        self.total += tick.seq

    def handshake(self) -> object:
        return self.peer.call("initialize", None, dict)

    def echo(self, text: str) -> Echo:
        response: Echo = self.peer.call("echo", Echo(text), Echo)
        return response

    def echo_many(self, text: str, calls: int, in_flight: int) -> None:
        self.peer.call_many("echo", Echo(text), Echo, calls=calls, in_flight=in_flight)

    def text_of(self, response: Echo) -> str:
        return response.text

    def count(self, events: int) -> int:
        self.total = 0
        self.peer.call("count", Count(events, EVENT_TEXT), Count)
        return self.total

    def drive(self, calls: int) -> object:
        return self.peer.call("drive", Count(calls, MESSAGE_TEXT), Count)

    def usage(self) -> Any:
        usage: Usage = self.peer.call("usage", None, Usage)
        return {"pid": usage.pid, "cpu": usage.cpu}


@contextmanager
def connect(command: list[str]) -> Iterator[Floor]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None
    assert process.stdout is not None
    yield Floor(BlockingPeer(process.stdout.fileno(), process.stdin.fileno()))
    process.stdin.close()
    process.wait()
    process.stdout.close()


run_host(connect)
