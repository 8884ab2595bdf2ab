"""Handlers of a blocking peer that call back, several of them within one chunk of input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from becket import Peer

pytestmark = [pytest.mark.loops, pytest.mark.process]

CHILD = """
from becket import Registry
from becket.blocking import connect_stdio

methods = Registry()

@methods.handle("ask")
def ask(params, ctx):
    return ctx.call("host/read", params)

with connect_stdio(methods=methods) as peer:
    peer.serve()
"""


async def test_requests_that_come_together_and_call_back_all_get_responses(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    responses: dict[int, Any] = {}
    with anyio.fail_after(60):
        async with Peer.connect_process([sys.executable, str(script)], inherit_env=True) as peer:

            @peer.handle("host/read")
            def read(params: list[int]) -> list[int]:
                return params

            async def ask(number: int) -> None:
                responses[number] = await peer.call("ask", [number], timeout=5)

            async with anyio.create_task_group() as group:
                for number in range(10):
                    group.start_soon(ask, number)
    assert responses == {number: [number] for number in range(10)}
