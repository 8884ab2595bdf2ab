"""The blocking floor as a child."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from blocking_peer import BlockingPeer
from endpoint import Count, Echo, Tick, Usage

peer = BlockingPeer(0, 1)


def count(params: Count) -> Callable[[], Count]:
    def run() -> Count:
        notify, text = peer.notify, params.text
        for seq in range(params.count):
            notify("tick", Tick(seq, text))
        return params

    return run


def drive(params: Count) -> Callable[[], Count]:
    def run() -> Count:
        message = Echo(params.text)
        for _ in range(params.count):
            peer.call("host/echo", message, Echo)
        return params

    return run


peer.handle("echo", Echo, lambda params: params)
peer.handle("initialize", None, lambda _: {})
peer.handle("usage", None, lambda _: Usage(os.getpid(), time.process_time()))
peer.handle("count", Count, count, is_async=True)
peer.handle("drive", Count, drive, is_async=True)
peer.serve()
