"""The child of `child.py` as an extension: the same methods, on the native dialect."""

from __future__ import annotations

import os
import time

from becket import Context
from becket.extension import ExtensionServer, handles
from messages import Count, Echo, Tick, Usage


class Native(ExtensionServer):
    id, version = "native", "1.0.0"

    @handles("echo", inline=True)
    def echo(self, params: Echo) -> Echo:
        return params

    @handles("usage", inline=True)
    def usage(self) -> Usage:
        return Usage(os.getpid(), time.process_time())

    @handles("count")
    async def count(self, params: Count, ctx: Context) -> Count:
        for seq in range(params.count):
            await ctx.notify("tick", Tick(seq, params.text))
        return params

    @handles("drive")
    async def drive(self, params: Count, ctx: Context) -> Count:
        message = Echo(params.text)
        for _ in range(params.count):
            await ctx.call("host/echo", message, returns=Echo)
        return params


Native().run()
