"""becket as a child, on the loop that the arguments name (`uvloop`, `trio`, else asyncio).

With `async-handlers` the echo is a coroutine.
"""

import os
import sys
import time

from becket import Context, Peer, Registry
from messages import Count, Echo, Tick, Usage

methods = Registry()

if "async-handlers" in sys.argv:

    @methods.handle("echo")
    async def echo_async(params: Echo) -> Echo:
        return params

else:

    @methods.handle("echo")
    def echo(params: Echo) -> Echo:
        return params


@methods.handle("initialize")
def initialize() -> dict[str, str]:
    return {}


@methods.handle("usage")
def usage() -> Usage:
    return Usage(os.getpid(), time.process_time())


@methods.handle("count")
async def count(params: Count, ctx: Context) -> Count:
    for seq in range(params.count):
        await ctx.notify("tick", Tick(seq, params.text))
    return params


@methods.handle("drive")
async def drive(params: Count, ctx: Context) -> Count:
    message = Echo(params.text)
    for _ in range(params.count):
        await ctx.call("host/echo", message, returns=Echo)
    return params


async def main() -> None:
    async with Peer.connect_stdio(methods=methods) as peer:
        await peer.wait_closed()


if "trio" in sys.argv:
    import trio

    trio.run(main)
elif "uvloop" in sys.argv:
    import uvloop

    uvloop.run(main())
else:
    import asyncio

    asyncio.run(main())
