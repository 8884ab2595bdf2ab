"""becket as a child that holds calls open. With `methods=N` it also has so many handlers that are never called."""

import asyncio
import os
import sys
import time

from becket import Context, Limits, Peer, Registry
from messages import Count, Echo, Tick, Usage

methods = Registry()
parked: list[asyncio.Future[None]] = []


@methods.handle("echo")
def echo(params: Echo) -> Echo:
    return params


@methods.handle("usage")
def usage() -> Usage:
    return Usage(os.getpid(), time.process_time())


@methods.handle("count")
async def count(params: Count, ctx: Context) -> Count:
    for seq in range(params.count):
        await ctx.notify("tick", Tick(seq, params.text))
    return params


@methods.handle("park")
async def park() -> None:
    future = asyncio.get_running_loop().create_future()
    parked.append(future)
    await future


@methods.handle("parked")
def count_parked() -> int:
    return len(parked)


@methods.on("release")
def release() -> None:
    for future in parked:
        future.set_result(None)
    parked.clear()


def idle() -> None:
    pass


async def main() -> None:
    words = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
    for number in range(int(words.get("methods", 0))):
        methods.handle(f"idle/{number}")(idle)
    async with Peer.connect_stdio(methods=methods, limits=Limits(inbound_requests=100_000)) as peer:
        await peer.wait_closed()


asyncio.run(main())
