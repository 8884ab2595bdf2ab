"""pygls as a child: a language server with features of its own."""

from __future__ import annotations

import os
import time
from typing import Any

from pygls.lsp.server import LanguageServer

server = LanguageServer("benchmark", "1")


@server.feature("bench/echo")
def echo(params: Any) -> dict[str, Any]:
    return {"text": params.text}


@server.feature("bench/count")
def count(params: Any) -> dict[str, Any]:
    for seq in range(params.count):
        server.protocol.notify("bench/tick", {"seq": seq, "text": params.text})
    return {"count": params.count}


@server.feature("bench/drive")
async def drive(params: Any) -> dict[str, Any]:
    for _ in range(params.count):
        await server.protocol.send_request_async("bench/hostEcho", {"text": params.text})
    return {"count": params.count}


@server.feature("bench/usage")
def usage(params: Any) -> dict[str, Any]:
    return {"pid": os.getpid(), "cpu": time.process_time()}


server.start_io()
