"""python-lsp-jsonrpc as a child: plain functions as handlers, what calls back in one of its worker threads."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from pylsp_jsonrpc.endpoint import Endpoint
from pylsp_jsonrpc.streams import JsonRpcStreamReader, JsonRpcStreamWriter


def echo(params: dict[str, Any]) -> dict[str, Any]:
    return {"text": params["text"]}


def count(params: dict[str, Any]) -> dict[str, Any]:
    for seq in range(params["count"]):
        endpoint.notify("tick", {"seq": seq, "text": params["text"]})
    return params


def drive(params: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    def run() -> dict[str, Any]:
        for _ in range(params["count"]):
            endpoint.request("host/echo", {"text": params["text"]}).result()
        return params

    return run


writer = JsonRpcStreamWriter(sys.stdout.buffer)
endpoint = Endpoint(
    {
        "initialize": lambda params: {},
        "echo": echo,
        "count": count,
        "drive": drive,
        "usage": lambda params: {"pid": os.getpid(), "cpu": time.process_time()},
    },
    writer.write,
)
JsonRpcStreamReader(sys.stdin.buffer).listen(endpoint.consume)
endpoint.shutdown()
