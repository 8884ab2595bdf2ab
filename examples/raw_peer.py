"""A host and a child process that call each other: `python examples/raw_peer.py [CHILD]`.

CHILD is raw_child.py (the default), raw_child_stdlib.py or raw_child.js. The host sees no difference.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from msgspec import Struct

from becket import CallTimeout, Peer, PeerCrashed

HERE = Path(__file__).parent


class Pair(Struct):
    a: int
    b: int


async def main(child: Path) -> None:
    interpreter = "node" if child.suffix == ".js" else sys.executable
    async with Peer.connect_process([interpreter, child]) as peer:

        @peer.handle("host/add")  # in time: reading starts at the first await of this block
        def add(params: Pair) -> int:
            return params.a + params.b

        echoed = await peer.call("echo", {"text": "milk"}, timeout=5)
        print(f"echo returned {echoed}")

        total = await peer.call("total", {"numbers": [1, 2, 3, 4]}, returns=int)
        print(f"total returned {total}, and let the host do every addition")

        async with peer.stream("count", {"to": 3}) as run:
            async for number in run:
                print(f"count has reached {number}")
            print(f"count returned {await run.result()!r}")

        try:
            await peer.call("sleep", timeout=1)
        except CallTimeout as error:
            print(f"sleep was given up: {error}")
        if await peer.call("wasCancelled", returns=bool):
            print("sleep was cancelled in the child too")

        try:
            await peer.call("crash")
        except PeerCrashed as error:
            print(f"crash ended the child with exit code {error.exit_code}; stderr: {error.stderr_tail.strip()}")


if __name__ == "__main__":
    asyncio.run(main(HERE / (sys.argv[1] if len(sys.argv) > 1 else "raw_child.py")))
