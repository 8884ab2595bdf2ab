"""An extension on becket's kit. Its tool is a plain function (`inline`: in the reader), or with `async` a coroutine."""

from __future__ import annotations

import os
import sys
import time

from becket.extension import ExtensionServer, handles, tool
from messages import Usage


class Extension(ExtensionServer):
    id, version = "extension", "1.0.0"

    @handles("usage", inline=True)
    def usage(self) -> Usage:
        return Usage(os.getpid(), time.process_time())


class Plain(Extension):
    @tool("Returns the text that it is given.")
    def echo(self, text: str) -> str:
        return text


class Inline(Extension):
    @tool("Returns the text that it is given.", inline=True)
    def echo(self, text: str) -> str:
        return text


class Async(Extension):
    @tool("Returns the text that it is given.")
    async def echo(self, text: str) -> str:
        return text


CLASSES = {"inline": Inline, "async": Async}
CLASSES.get(sys.argv[-1], Plain)().run()
