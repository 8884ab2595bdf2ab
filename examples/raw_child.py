"""The other half of raw_peer.py, with becket: five handlers in a registry, served over stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from msgspec import Struct

from becket import Context, Peer, Registry

methods = Registry()
was_cancelled = asyncio.Event()


class Numbers(Struct):
    numbers: list[int]


class Count(Struct):
    to: int


@methods.handle("echo")
def echo(params: Any) -> Any:
    return params


@methods.handle("total")
async def total(params: Numbers, ctx: Context) -> int:
    result = 0
    for number in params.numbers:
        result = await ctx.call("host/add", {"a": result, "b": number}, returns=int)
    return result


@methods.handle("count")
async def count(params: Count, ctx: Context) -> str:
    for number in range(1, params.to + 1):
        await ctx.progress(number)
    return "done"


@methods.handle("sleep")
async def sleep() -> None:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:  # the host has stopped waiting
        was_cancelled.set()
        raise


@methods.handle("wasCancelled")
async def tell_that_sleep_was_cancelled() -> bool:
    return await was_cancelled.wait()


@methods.handle("crash")
def crash() -> None:
    print("out of paper", file=sys.stderr, flush=True)
    os._exit(3)


async def main() -> None:
    async with Peer.connect_stdio(methods=methods) as peer:
        await peer.wait_closed()


asyncio.run(main())
