"""The child of demo.py. Every handler here does one thing that the host shows."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from itertools import count

from msgspec import Struct

from becket import Context, Peer, Registry

methods = Registry()
PACE = 0.12  # seconds between two events: slow enough to be watched
PI = "3.14159265358979323846"


class Numbers(Struct):
    numbers: list[int]


class Pages(Struct):
    pages: int


@methods.handle("total")
async def total(params: Numbers, ctx: Context) -> int:
    result = 0
    for number in params.numbers:
        result = await ctx.call("host/add", {"a": result, "b": number}, returns=int)
    return result


@methods.handle("print")
async def print_pages(params: Pages, ctx: Context) -> str:
    for page in range(1, params.pages + 1):
        await asyncio.sleep(PACE)
        await ctx.notify("page", {"page": page, "of": params.pages})
    return "all printed"


@methods.handle("think")
async def think(params: None, ctx: Context) -> None:
    try:
        for length in count(2):
            await asyncio.sleep(PACE)
            await ctx.progress(PI[:length])
    except asyncio.CancelledError:
        ctx.peer.notify_nowait("host/hear", {"text": "cancelled in the middle of the call, and cleaned up"})
        raise


@methods.handle("chatter")
def chatter() -> int:
    print("this is print(), with no idea of the wire", flush=True)
    os.write(1, b"this is a C library that writes to descriptor 1\n")
    subprocess.run(["echo", "this is a program that the child has started"], check=True)
    return 3


@methods.handle("wait")
async def wait() -> None:
    await asyncio.sleep(3600)


@methods.handle("crash")
def crash() -> None:
    print("the printer is on fire", file=sys.stderr, flush=True)
    os._exit(70)


async def main() -> None:
    async with Peer.connect_stdio(methods=methods) as peer:
        await peer.wait_closed()


asyncio.run(main())
