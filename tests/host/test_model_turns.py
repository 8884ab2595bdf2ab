"""A host against endless models: thousands of tool calls, and responses without an end."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.host.folders import write_extension

from becket import Limits, Meaning, RemoteError
from becket.contract.providers import user
from becket.errors import CallTimeout, LocalProtocolError
from becket.host import Timeouts
from becket.host.host import Host
from becket.host.host_settings import group_arguments

pytestmark = [pytest.mark.process, pytest.mark.loops]

GREEDY = """
from becket import ExtensionServer
from becket.contract.providers import Model, ProviderResult
from becket.extension import provider, tool

class Greedy(ExtensionServer):
    id, version = "greedy", "1.0.0"
    runs = 0

    @tool("Returns many bytes.")
    async def fetch(self, size: int) -> str:
        self.runs += 1
        return "x" * size

    @tool("Returns how often a tool has run.")
    async def count(self) -> int:
        return self.runs

    @provider("local", models=[Model("many", tool_use=True), Model("endless", streaming=True)])
    async def answer(self, request, out):
        if request.model_id == "endless":
            while True:
                await out.text("and so on ")
        calls, size = map(int, request.messages[0].content.split())
        if len(request.messages) == 1:
            return ProviderResult(tuple(
                {"type": "tool_use", "id": f"t{n}", "name": "greedy_fetch", "input": {"size": size}}
                for n in range(calls)
            ))
        return ProviderResult(({"type": "told", "blocks": request.messages[-1].content},))

if __name__ == "__main__":
    Greedy().run()
"""
GRANTS = {"greedy": ["providers.register", "tools.register"]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "extensions"
    permissions = f"permissions = {GRANTS['greedy']}\n"
    write_extension(root / "greedy", "greedy", permissions, files={"main.py": textwrap.dedent(GREEDY)})
    return root


def host_of(root: Path, **options: Any) -> Host:
    return Host([root], data=None, grants=GRANTS, **group_arguments(options))


async def ask_many(host: Host, calls: int, size: int) -> list[dict[str, Any]]:
    """Has the model make so many tool calls with outputs of this size, and returns the results that it got."""
    await host.ready("greedy")
    result = await host.complete("greedy:local:many", messages=[user(f"{calls} {size}")], use_tools=True)
    (received,) = result.content
    blocks: list[dict[str, Any]] = received["blocks"]
    return blocks


async def read_endlessly(host: Host, **options: Any) -> None:
    """Reads a response that never ends, as fast as it comes, until its time has passed: at either end."""
    await host.ready("greedy")
    try:
        async with host.stream("greedy:local:endless", messages=[user("go on")], **options) as response:
            async for _ in response:
                pass
    except CallTimeout:
        return
    except RemoteError as error:
        if error.meaning is not Meaning.TIMEOUT:
            raise
        return
    raise AssertionError("the answer has ended")


async def test_of_six_thousand_tool_calls_in_one_turn_64_run(root: Path) -> None:
    with anyio.fail_after(60):
        async with host_of(root) as host:
            blocks = await ask_many(host, 6_000, 10)
            assert await host.call_tool("greedy_count") == "64"

    assert Counter(block["type"] for block in blocks) == {"tool_result": 64, "text": 1}
    assert "5936" in blocks[-1]["text"]


async def test_the_outputs_of_one_turn_stay_within_their_bytes(root: Path) -> None:
    limits = Limits(model_tool_bytes=100_000)
    with anyio.fail_after(60):
        async with host_of(root, limits=limits) as host:
            blocks = await ask_many(host, 10, 1_000_000)
            assert await host.call_tool("greedy_count") == "4"

    outputs = [block["content"] for block in blocks if not block.get("is_error")]
    assert [len(output) for output in outputs] == [30_000, 30_000, 30_000, 10_000]
    assert all("1000000" in output for output in outputs)
    assert sum(block.get("is_error", False) for block in blocks) == 6


async def test_a_turn_that_does_not_fit_into_a_frame_fails_and_the_extension_lives(root: Path) -> None:
    limits = Limits(frame=200_000)
    with anyio.fail_after(60):
        async with host_of(root, limits=limits) as host:
            with pytest.raises(LocalProtocolError):
                await ask_many(host, 64, 30_000)
            assert await host.call_tool("greedy_fetch", {"size": 3}) == "xxx"


async def test_an_endless_stream_that_is_read_ends_by_its_total_time(root: Path) -> None:
    with anyio.fail_after(60):
        async with host_of(root) as host:
            await read_endlessly(host, timeout=0.3)
            assert await host.call_tool("greedy_fetch", {"size": 3}) == "xxx"


async def test_the_total_time_of_every_stream_is_set_once_for_a_host(root: Path) -> None:
    with anyio.fail_after(60):
        async with host_of(root, timeouts=Timeouts(total=0.2)) as host:
            await read_endlessly(host)
