"""A stdio host of Morphir that carries out the orders of the suite, and has the defects it is given."""

from __future__ import annotations

from typing import Any

from small_host import DEFECTS, CallFailed, Message, SmallHost  # type: ignore[import-not-found]


class MorphirHost(SmallHost):
    has_version = False
    has_null_params = True
    first_id = 0
    next_call = ("capabilities", None)

    def shake_hands(self) -> None:
        self.call("initialize", {})
        capabilities = self.call("capabilities", None)
        if not isinstance(capabilities, list):
            if not DEFECTS.has("accepts every result"):
                raise CallFailed("no list of capabilities")
        elif DEFECTS.has("needs known members") and any(len(one) != 2 for one in capabilities):
            raise CallFailed("unknown members")

    def call_tool(self, name: str, input: Any, timeout: float) -> Any:
        return self.call(name, input, timeout)

    def read_result(self, response: Message) -> Any:
        if response.get("error") is not None:
            raise CallFailed(response["error"])
        if DEFECTS.has("takes null for an error") and self._last_id > 1 and response.get("result") is None:
            raise CallFailed("null")
        return response.get("result")

    def request_shutdown(self) -> None:
        if DEFECTS.has("sends shutdown"):
            self.write({"id": 99, "method": "shutdown", "params": None})


MorphirHost().main()
