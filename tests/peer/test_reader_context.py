"""Handlers run in the context of the task that connected, whichever task has resumed reading since."""

from __future__ import annotations

import socket
from contextvars import ContextVar
from functools import partial
from typing import Any

import anyio
import pytest

from becket import Context, Limits, Peer
from becket.peer.transport.fd import FdTransport

pytestmark = pytest.mark.loops

TASK: ContextVar[str] = ContextVar("task", default="nobody")
EVENTS = 60  # of 64 that a stream holds: enough to pause the link


async def test_a_handler_does_not_see_the_context_of_a_task_that_has_resumed_reading() -> None:
    ours, theirs = socket.socketpair()
    TASK.set("connects")
    async with (
        Peer.over(FdTransport.from_socket(ours), limits=Limits(stream_events=64)) as peer,
        Peer.over(FdTransport.from_socket(theirs)) as other,
    ):
        peer.handle("who")(lambda: TASK.get())

        @other.handle("count")
        async def count(params: None, ctx: Context) -> None:
            for number in range(EVENTS):
                await ctx.notify("tick", [number])

        async def consume() -> None:
            TASK.set("consumes")
            async with peer.stream("count", events={"tick": Any}, pause_connection=True) as run:
                assert [event async for event in run] == [[number] for number in range(EVENTS)]

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(consume)
            assert await other.call("who") == "connects"


async def test_a_link_that_a_handler_has_opened_does_not_belong_to_its_request() -> None:
    ours, theirs = socket.socketpair()
    inner, extensions = socket.socketpair()
    left: list[float] = []
    is_open, is_over = anyio.Event(), anyio.Event()
    async with (
        Peer.over(FdTransport.from_socket(ours), dialect="native") as peer,
        Peer.over(FdTransport.from_socket(theirs), dialect="native") as other,
        Peer.over(FdTransport.from_socket(extensions), dialect="native") as managed,
    ):

        @managed.handle("left")
        def note_time(params: None, ctx: Context) -> None:
            left.append(ctx.remaining())
            is_over.set()

        @other.handle("open")
        async def open_link() -> None:
            async with (
                Peer.over(FdTransport.from_socket(inner), dialect="native") as opened,
                anyio.create_task_group() as calls,
            ):

                @opened.on("told")
                def call_back() -> None:
                    calls.start_soon(partial(opened.call, "left", timeout=1_000))

                is_open.set()
                await is_over.wait()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(peer.call, "open", timeout=5))
                await is_open.wait()
                await managed.notify("told")

    assert left[0] > 900  # not the five seconds of the request
