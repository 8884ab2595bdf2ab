"""The web application with extensions, in a real server: it shows their state, calls their tools, and ends them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.examples.example_programs import EXAMPLES

for module in ("fastapi", "uvicorn"):
    pytest.importorskip(module, reason=f"{module} is not installed: it is in the extra `test`")
pytestmark = [pytest.mark.process]

PATIENCE = 60  # seconds for a server to start on a busy machine


@contextmanager
def serving() -> Iterator[str]:
    """Runs the application in a server as its reader would, and gives the address; it ends in good order."""
    command = [sys.executable, "-m", "uvicorn", "fastapi_host:app", "--app-dir", str(EXAMPLES), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as server:
        assert server.stderr is not None
        try:
            found = (re.search(r"running on (http://\S+)", line) for line in server.stderr)
            yield next(address[1] for address in found if address)
        finally:
            server.send_signal(signal.SIGTERM)
            received = server.communicate(timeout=PATIENCE)[1]
    assert "Application shutdown complete" in received
    assert "Traceback" not in received


def ask(address: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = Request(address, data, {"Content-Type": "application/json"})
    try:
        with urlopen(request, timeout=PATIENCE) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_web_application_has_a_host_for_as_long_as_it_runs() -> None:
    with serving() as address:
        _, status = ask(f"{address}/status")
        assert {one["id"]: one["state"] for one in status["extensions"]} == {"notes": "ready"}
        assert {one["problem"] for one in status["problems"]} == {"left out by --only"}
        assert ask(f"{address}/tools/notes:keep", {"text": "buy milk"})[0] == 200
        assert "buy milk" in str(ask(f"{address}/tools/notes:find", {"text": "MILK"}))
        assert ask(f"{address}/tools/nosuch", {})[0] == 404
        assert ask(f"{address}/tools/notes:keep", {"text": 5})[0] == 422
        pids = [one["pid"] for one in status["extensions"]]
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
