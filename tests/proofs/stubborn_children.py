"""Children that do not end when their host does: `python stubborn_children.py CASE FIFO`.

Each writes its case and the pids that must be gone to the named pipe, once it is as busy as it will ever be.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any


def report(case: str, *more: int) -> None:
    with open(sys.argv[2], "w", encoding="ascii") as fifo:
        fifo.write(f"{case} {' '.join(map(str, (os.getpid(), *more)))}\n")


def spin() -> None:
    while True:
        pass


def sleep() -> None:
    while True:
        time.sleep(3600)


def hold_the_lock() -> None:
    sum(range(10**12))  # a loop in C that lets no other thread run


async def swallow() -> None:
    import anyio

    while True:
        try:
            await anyio.sleep(3600)
        except BaseException:
            continue


def start_family() -> int:
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(3600)"]).pid


# -- extensions of a host


def run_extension(case: str) -> None:
    from becket import ExtensionServer
    from becket.extension import tool

    class Plain(ExtensionServer):
        """On the blocking runtime."""

        id, version = case, "1.0.0"

        @tool("Never returns.")
        def stay(self) -> str:
            if case == "family":
                report(case, start_family())
                return "started"
            report(case)
            (hold_the_lock if case == "locked" else spin)()
            return ""

    class Looped(ExtensionServer):
        """On an event loop; a plain function runs in a thread."""

        id, version = case, "1.0.0"

        @tool("Never returns.")
        async def swallow(self) -> str:
            report(case)
            await swallow()
            return ""

        @tool("Never returns.")
        def stay(self) -> str:
            report(case)
            sleep()
            return ""

    (Looped if case in ("thread", "swallows") else Plain)().run()


def serve_deaf(case: str) -> None:
    """Sends what a host requires of an extension, and never reads again."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
    request = json.loads(sys.stdin.buffer.read(length))
    result = {"protocol_version": 1, "capabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()
    report(case)
    sleep()


# -- children of a peer


def run_peer(case: str) -> None:
    import anyio

    from becket import Peer

    async def serve() -> None:
        async with Peer.connect_stdio() as peer:

            def stay(params: Any) -> None:
                report(case)
                (spin if case == "peer_plain" else sleep)()

            async def swallowing(params: Any) -> None:
                report(case)
                await swallow()

            peer.handle("stay", thread=case == "peer_thread")(swallowing if case == "peer_swallows" else stay)
            await peer.wait_closed()

    anyio.run(serve, backend=sys.argv[3] if len(sys.argv) > 3 else "asyncio")


def run_blocking(case: str) -> None:
    from becket.blocking import connect_stdio

    with connect_stdio() as peer:

        @peer.handle("stay")
        def stay(params: Any) -> None:
            if case == "peer_family":
                report(case, start_family())
            else:
                report(case)
                spin()

        peer.serve()


def main(case: str) -> None:
    match case:
        case "deaf" | "peer_deaf":
            serve_deaf(case)
        case "peer_blocking" | "peer_family":
            run_blocking(case)
        case _ if case.startswith("peer_"):
            run_peer(case)
        case _:
            run_extension(case)


if __name__ == "__main__":
    main(sys.argv[1])
