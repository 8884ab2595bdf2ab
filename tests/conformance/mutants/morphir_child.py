"""A Morphir extension that offers all that the cases need, and has the defects it is given."""

from __future__ import annotations

from typing import Any

from small_server import Call, SmallServer, list_tools, unknown  # type: ignore[import-not-found]


class MorphirExtension(SmallServer):
    has_version = False
    null_id_errors = False

    def serve(self, method: str, params: Any, call: Call) -> Any:
        match method:
            case "initialize":
                return {"status": "ready"}
            case "capabilities":
                return list_tools("params_schema")
            case "health_check":
                return {"status": "healthy"}
            case _ if method.startswith("conform_"):
                return self.run_tool(method, params, call)
            case _:
                unknown(method)

    def to_error(self, code: int, message: str) -> Any:
        return message

    def log(self, message: str) -> None:
        self.write({"method": "log", "params": {"level": "info", "message": message}})


MorphirExtension().run()
