"""Programs of the same user can follow the traffic of a running host, without delaying it."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cli.commands import write_extension

from becket.errors import ConnectionLost
from becket.host.host import Host
from becket.host.host_settings import group_arguments
from becket.host.live_traffic import (
    MAX_BODY,
    TRACE_FOLLOW,
    TRACE_FOLLOWING,
    TRACE_FRAME,
    Follow,
    Following,
    TracedFrame,
    reachable,
)
from becket.limits import DEFAULT_LIMITS
from becket.peer.peer import Peer

pytestmark = pytest.mark.process

ECHO = """
from becket.extension import ExtensionServer, tool

class Echo(ExtensionServer):
    id, version = "{id}", "1.0.0"

    @tool("Says it again.")
    async def echo(self, text: str) -> str:
        return text

Echo().run()
"""


@asynccontextmanager
async def hosting(folder: Path, *ids: str, **more: Any) -> AsyncGenerator[Host, None]:
    for id in ids:
        write_extension(folder / "extensions", id, ECHO.format(id=id), permissions=["tools.register"])
    # With consent they run from copies, where Python uses the compiled files of becket and of its own library.
    options: dict[str, Any] = {"data": folder / "state", "live_trace": True, "ask": lambda *_: True, **more}
    async with Host([folder / "extensions"], **group_arguments(options)) as host:
        for id in ids:
            await host.ready(id)
        yield host


class Listener:
    """A program that follows a host."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.following: Following | None = None
        self.frames: list[TracedFrame] = []
        self._news = anyio.Event()

    def begin(self, following: Following) -> None:
        self.following = following
        self.begun.set()

    def take(self, frame: TracedFrame) -> None:
        self.frames.append(frame)
        self._news.set()
        self._news = anyio.Event()

    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(frame.text) for frame in self.frames if frame.text]

    def methods(self) -> list[str]:
        return [message["method"] for message in self.messages() if "method" in message]

    async def wait_for(self, method: str) -> None:
        while method not in self.methods():
            await self._news.wait()


@asynccontextmanager
async def following(folder: Path, *ids: str) -> AsyncGenerator[Listener, None]:
    listener = Listener()
    with reachable(folder / "state") as path:
        peer = await Peer.connect_unix(path)
    peer.on(TRACE_FOLLOWING)(listener.begin)
    peer.on(TRACE_FRAME)(listener.take)

    async def follow() -> None:
        with pytest.raises(ConnectionLost):
            await peer.call(TRACE_FOLLOW, Follow(ids), timeout=None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        await listener.begun.wait()
        yield listener
        await peer.aclose()


@pytest.mark.loops
async def test_a_follower_gets_each_message_between_the_host_and_its_extensions(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with hosting(tmp_path, "notes") as host, following(tmp_path) as listener:
            assert await host.call_tool("notes:echo", {"text": "milk"}) == "milk"
            await listener.wait_for("tool.call")
            call = next(message for message in listener.messages() if message.get("method") == "tool.call")
            while not any(message.get("result") == "milk" for message in listener.messages()):
                await anyio.lowlevel.checkpoint()

    assert listener.following == Following("becket", ("notes",))
    assert call["params"]["input"] == {"text": "milk"}
    sent = next(frame for frame in listener.frames if "tool.call" in frame.text)
    assert (sent.extension, sent.dialect, sent.to_child) == ("notes", "native", True)


async def test_the_handshake_of_an_extension_that_starts_meanwhile_is_followed(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with hosting(tmp_path, "notes") as host, following(tmp_path) as listener:
            await host["notes"].reload()
            await listener.wait_for("initialize")


async def test_a_follower_may_choose_extensions(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with hosting(tmp_path, "notes", "other") as host, following(tmp_path, "other") as listener:
            await host.call_tool("notes:echo", {"text": "milk"})
            await host.call_tool("other:echo", {"text": "tea"})
            await listener.wait_for("tool.call")

    assert {frame.extension for frame in listener.frames} == {"other"}


@pytest.mark.loops
async def test_followers_come_and_go_and_each_gets_a_message_once(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with hosting(tmp_path, "notes") as host:
            async with following(tmp_path) as first, following(tmp_path) as second:
                await host.call_tool("notes:echo", {"text": "milk"})
                await first.wait_for("tool.call")
                await second.wait_for("tool.call")
            async with following(tmp_path) as third:
                await host.call_tool("notes:echo", {"text": "tea"})
                await third.wait_for("tool.call")

    assert [listener.methods().count("tool.call") for listener in (first, second, third)] == [1, 1, 1]


async def test_a_message_that_is_too_long_is_replaced_by_its_size(tmp_path: Path) -> None:
    text = "x" * (MAX_BODY + 1)
    with anyio.fail_after(60):
        async with hosting(tmp_path, "notes") as host, following(tmp_path) as listener:
            assert await host.call_tool("notes:echo", {"text": text}) == text
            while sum(frame.size > MAX_BODY for frame in listener.frames) < 2:
                await anyio.lowlevel.checkpoint()

    assert not [frame for frame in listener.frames if frame.size > MAX_BODY and frame.text]


async def test_a_follower_that_does_not_read_delays_no_call_and_gets_the_number_of_missed_frames(
    tmp_path: Path,
) -> None:
    text = "x" * 200_000
    skipped: list[int] = []
    with anyio.fail_after(90):
        async with hosting(tmp_path, "notes", limits=DEFAULT_LIMITS) as host:
            with reachable(tmp_path / "state") as path:
                stream = await anyio.connect_unix(path)
            follow = b'{"jsonrpc":"2.0","id":1,"method":"trace.follow","params":{}}'
            await stream.send(b"Content-Length: %d\r\n\r\n%b" % (len(follow), follow))
            assert b"trace.following" in await stream.receive()
            for _ in range(60):  # more than the queue and the buffers of the socket hold
                assert await host.call_tool("notes:echo", {"text": text}) == text

            received = b""
            async with anyio.create_task_group() as tasks:

                async def call_on() -> None:
                    while True:
                        await host.call_tool("notes:echo", {"text": "milk"})

                tasks.start_soon(call_on)
                while b'"skipped":' not in received:
                    received = received[-20:] + await stream.receive()
                tasks.cancel_scope.cancel()
            skipped.append(int(received.partition(b'"skipped":')[2].split(b"}")[0] or b"1"))
            await stream.aclose()

    assert skipped[0] > 0


async def test_only_the_user_of_the_host_can_connect(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with hosting(tmp_path, "notes"):
            mode = (tmp_path / "state" / "trace.sock").stat().st_mode

    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) & 0o077 == 0
    assert not (tmp_path / "state" / "trace.sock").exists()


async def test_a_folder_whose_path_is_too_long_for_a_socket_works_too(tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 20) / ("deeper" * 10)
    deep.mkdir(parents=True)
    with anyio.fail_after(60):
        async with hosting(deep, "notes") as host, following(deep) as listener:
            await host.call_tool("notes:echo", {"text": "milk"})
            await listener.wait_for("tool.call")


@pytest.mark.parametrize("options", [{"live_trace": False}, {"data": None}])
async def test_without_it_and_without_a_data_directory_there_is_no_socket(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    with anyio.fail_after(60):
        async with hosting(tmp_path, "notes", **options):
            assert not (tmp_path / "state" / "trace.sock").exists()


async def test_a_socket_that_cannot_be_made_is_logged_and_the_host_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state" / "trace.sock").mkdir(parents=True)
    with anyio.fail_after(60):
        async with hosting(tmp_path, "notes") as host:
            assert await host.call_tool("notes:echo", {"text": "milk"}) == "milk"

    assert "cannot be followed" in caplog.text
