"""becket as a child without an event loop."""

import os
import time

from becket.blocking import BlockingContext, connect_stdio
from becket.methods.registry import Registry
from messages import Count, Echo, Tick, Usage

methods = Registry()


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
def count(params: Count, ctx: BlockingContext) -> Count:
    for seq in range(params.count):
        ctx.notify("tick", Tick(seq, params.text))
    return params


@methods.handle("drive")
def drive(params: Count, ctx: BlockingContext) -> Count:
    message = Echo(params.text)
    for _ in range(params.count):
        ctx.call("host/echo", message, returns=Echo)
    return params


with connect_stdio(methods=methods) as peer:
    peer.serve()
