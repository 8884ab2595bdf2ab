"""A language server with the lifecycle alone, which has the defects it is given."""

from __future__ import annotations

import os
from typing import Any

from small_server import DEFECTS, Call, Rejected, SmallServer, unknown  # type: ignore[import-not-found]


class LanguageServer(SmallServer):
    is_lines = False
    is_ready = False
    is_shut_down = False

    def serve(self, method: str, params: Any, call: Call) -> Any:
        if method == "initialize":
            self.is_ready = True
            return {"capabilities": {}, "serverInfo": {"name": "conform"}}
        if not self.is_ready:
            raise Rejected(-32002, "not initialized")
        if self.is_shut_down:
            raise Rejected(-32600, "shut down")
        if method == "shutdown":
            self.is_shut_down = True
            return None
        unknown(method)

    def on_notification(self, method: str, params: Any) -> None:
        if method == "exit" and not DEFECTS.has("ignores exit"):
            os._exit(0 if self.is_shut_down else 1)
        if not self.is_ready and DEFECTS.has("exits on an early notification"):
            os._exit(3)


LanguageServer().run()
