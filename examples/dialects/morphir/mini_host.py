"""A host as Morphir's design has it, in plain Python and very small: `python3 mini_host.py COMMAND...` drives any
extension.

It starts the program, sends what that host sends, in its order and byte for byte, then calls what is requested on its
own input: lines such as `transform {"ir": {}}`. It prints one line for each response and for what is logged.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


class MiniHost:
    """One extension and the ids of its calls."""

    def __init__(self, command: list[str], config: dict[str, Any]) -> None:
        self._config = config
        self._next_id = 0
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "MORPHIR_EXTENSION": "1"},  # added to what there is
            text=True,
            encoding="utf-8",
        )

    def load(self) -> None:
        """Sends the configuration itself and requests the capabilities: ids 0 and 1."""
        print("initialize:", show(self.call("initialize", self._config)))
        capabilities: list[dict[str, Any]] = self.call("capabilities", None)["result"]
        for capability in capabilities:
            print("capability:", capability["name"], "-", capability["description"])

    def call(self, method: str, params: Any) -> dict[str, Any]:
        """Returns the response to a call, whatever it is."""
        number = self._next_id
        self._next_id += 1
        self.send(json.dumps({"id": number, "method": method, "params": params}, separators=(",", ":")))
        while True:
            message = self._receive()
            if message.get("id") == number:
                return message
            if message.get("method") == "log":
                print("log:", message["params"]["level"], message["params"]["message"])

    def send(self, line: str) -> None:
        """Sends a line as it is."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:  # what else the program prints is passed over
            if line.startswith("{"):
                message: dict[str, Any] = json.loads(line)
                return message
        raise EOFError(f"the extension ended with exit code {self._process.wait()}")

    def unload(self) -> None:
        """Ends the input, waits a little, and ends the program."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        print("exit:", code)


def show(response: dict[str, Any]) -> str:
    if response.get("error") is not None:
        return f"error {response['error']}"
    return json.dumps(response.get("result"))


def main() -> None:
    host = MiniHost(sys.argv[1:], {"style": "dense"})
    try:
        host.load()
        for line in sys.stdin:
            if line.startswith("!"):
                host.send(line[1:].rstrip("\n"))  # something that is no request
                continue
            method, _, params = line.strip().partition(" ")
            print(f"{method}:", show(host.call(method, json.loads(params) if params else None)))
    finally:
        host.unload()


if __name__ == "__main__":
    main()
