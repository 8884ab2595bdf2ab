"""python-lsp-jsonrpc as a host: a thread reads, the main thread calls."""

from __future__ import annotations

import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pylsp_jsonrpc.endpoint import Endpoint
from pylsp_jsonrpc.streams import JsonRpcStreamReader, JsonRpcStreamWriter

from benchmarks.hosting.blocking import run_host
from benchmarks.workloads import EVENT_TEXT, MESSAGE_TEXT


class PythonLspJsonRpc:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.total = 0
        handlers = {"tick": self.on_tick, "host/echo": lambda params: {"text": params["text"]}}
        self.writer = JsonRpcStreamWriter(process.stdin)
        self.endpoint = Endpoint(handlers, self.writer.write)
        self.reader = JsonRpcStreamReader(process.stdout)
        self.thread = threading.Thread(target=self.reader.listen, args=(self.endpoint.consume,), daemon=True)
        self.thread.start()

    def on_tick(self, params: dict[str, Any]) -> None:
        self.total += params["seq"]

    def call(self, method: str, params: Any) -> Any:
        return self.endpoint.request(method, params).result()

    def handshake(self) -> object:
        return self.call("initialize", {})

    def echo(self, text: str) -> Any:
        return self.endpoint.request("echo", {"text": text}).result()

    def echo_many(self, text: str, calls: int, in_flight: int) -> None:
        params = {"text": text}
        waiting = deque(self.endpoint.request("echo", params) for _ in range(in_flight))
        for _ in range(calls - in_flight):
            waiting.popleft().result()
            waiting.append(self.endpoint.request("echo", params))
        for future in waiting:
            future.result()

    def text_of(self, response: Any) -> str:
        text: str = response["text"]
        return text

    def count(self, events: int) -> int:
        self.total = 0
        self.call("count", {"count": events, "text": EVENT_TEXT})
        return self.total

    def drive(self, calls: int) -> object:
        return self.call("drive", {"count": calls, "text": MESSAGE_TEXT})

    def usage(self) -> Any:
        return self.call("usage", {})


@contextmanager
def connect(command: list[str]) -> Iterator[PythonLspJsonRpc]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    subject = PythonLspJsonRpc(process)
    yield subject
    subject.writer.close()
    process.wait()
    subject.thread.join()
    subject.endpoint.shutdown()


run_host(connect)
