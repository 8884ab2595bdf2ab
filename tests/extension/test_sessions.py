"""The session: the handshake, requests that come too early or too late, and the end, on both runtimes."""

from __future__ import annotations

import socket
from typing import Any

import anyio
import pytest
from tests.blocking.pairs import Started
from tests.extension.notes import Notes
from tests.extension.raw_host import RUNTIMES, build_initialize, hosted, initialize, linked, use_tool
from tests.peer.scripted import Script, request

from becket import DIALECTS, DisconnectReason, ExtensionServer, Meaning, Peer, RemoteError, RpcError
from becket.blocking import BlockingPeer
from becket.contract.commands import CommandInvoke
from becket.contract.handshake import FEATURES, INITIALIZE, SHUTDOWN, DeclaredCapability, HostInfo
from becket.contract.hooks import Continue, HookEvent, HookResult
from becket.contract.info import INFO_GET, ExtensionInfo
from becket.contract.providers import Model, ProviderRequest, ProviderResult, user
from becket.contract.settings import EditorOpen
from becket.contract.tools import TOOL_CALL, ToolCall
from becket.errors import LocalProtocolError
from becket.extension import BlockingProviderStream, command, handles, hook, provider, tool
from becket.methods.descriptors import Notification
from becket.peer.transport.fd import FdTransport
from becket.testing import memory_transports

pytestmark = pytest.mark.loops
both_runtimes = pytest.mark.parametrize("runtime", RUNTIMES)

STARTED = Notification("host/started", dict)


class Plain(ExtensionServer):
    id, version = "plain", "2"
    capabilities = (DeclaredCapability("ocr", "Tess", ("audio.input",), {"any": 1}),)

    def __init__(self) -> None:
        self.life: list[str] = []

    def on_start(self) -> None:
        self.life.append("started")

    def on_stop(self) -> None:
        self.life.append("stopped")

    @tool("Adds one.")
    def add(self, number: int) -> int:
        return number + 1

    @handles("plain/known")
    def known(self) -> dict[str, Any]:
        info = self.host.info
        return {"config": self.config, "root": self.root, "as": self.host.extension, "by": info and info.name}


async def refused(host: Peer, *call: Any) -> RemoteError:
    with pytest.raises(RemoteError) as error:
        await host.call(*call)
    return error.value


# -- the handshake


@both_runtimes
async def test_the_handshake_sends_the_declarations(runtime: str) -> None:
    async with linked(Plain(), runtime) as host:
        response = await initialize(host)

    assert response.protocol_version == 1
    assert [it.name for it in response.capabilities.tools] == ["add"]
    assert response.capabilities.capabilities == Plain.capabilities
    assert response.features == FEATURES


@both_runtimes
async def test_features_are_not_announced_to_an_old_host(runtime: str) -> None:
    async with linked(Plain(), runtime) as host:
        response = await host.call(INITIALIZE.name, build_initialize(()))

    assert response.keys() == {"protocol_version", "capabilities"}


@both_runtimes
async def test_the_handshake_includes_what_the_host_would_request_next(runtime: str) -> None:
    async with linked(Plain(), runtime) as host:
        response = await initialize(host)
        called = await host.call(INFO_GET)

    assert response.info == called != ExtensionInfo()


class Wordy(Plain):
    def info(self) -> ExtensionInfo:
        raise RuntimeError("it is not known yet")


@both_runtimes
async def test_the_info_of_the_author_cannot_delay_or_fail_the_handshake(runtime: str) -> None:
    async with linked(Wordy(), runtime) as host:
        response = await initialize(host)

    assert response.info is None


def test_only_features_of_the_dialect_are_announced() -> None:
    assert frozenset(FEATURES) == DIALECTS["native"].features


@both_runtimes
async def test_an_extension_has_the_identity_of_its_host_and_its_own_id(runtime: str) -> None:
    async with hosted(Plain(), runtime, plugin_id="plain-2", host=HostInfo("studio", "3")) as host:
        known = await host.call("plain/known")

    assert known == {"config": {"endpoint": "here"}, "root": "/extensions/notes", "as": "plain-2", "by": "studio"}


@both_runtimes
async def test_another_version_gets_a_response_with_the_supported_versions(runtime: str) -> None:
    async with linked(Plain(), runtime) as host:
        of_tomorrow = await refused(host, INITIALIZE.name, {"extension_protocol_version": 2, "shape": "new"})
        response = await initialize(host)

    assert (of_tomorrow.meaning, of_tomorrow.data) == (Meaning.INCOMPATIBLE, {"supported": [1]})
    assert response.protocol_version == 1


@both_runtimes
@pytest.mark.parametrize("params", [None, {}, [], {"extension_protocol_version": "1", "config": []}])
async def test_an_invalid_handshake_is_rejected_with_all_its_problems(runtime: str, params: Any) -> None:
    async with linked(Plain(), runtime) as host:
        error = await refused(host, INITIALIZE.name, params)

    assert error.meaning is Meaning.INVALID_PARAMS
    if isinstance(params, dict):
        assert {problem["pointer"] for problem in error.data["problems"]} == {
            "/extension_protocol_version",
            "/plugin_id",
            "/plugin_root",
            "/config",
        }


# -- too early, twice, too late


class Versatile(Plain):
    """Offers something of each kind."""

    @command("do")
    def do(self, args: list[str]) -> str:
        return "done"

    @provider("local", models=[Model("small", streaming=True)])
    def response(self, request: ProviderRequest, out: BlockingProviderStream) -> ProviderResult:
        return ProviderResult.of_text("yes")

    @hook("before_tool_call")
    def look(self, event: HookEvent) -> HookResult:
        return Continue()

    def on_editor_open(self, opened: EditorOpen) -> None:
        """Shows nothing."""


REQUEST = ProviderRequest("local", "small", "plain:local:small", (user("hello"),))
EARLY: dict[str, Any] = {
    "tool.call": ToolCall("add", {"number": 1}),
    "command.invoke": CommandInvoke("do", (), "r"),
    "provider.complete": REQUEST,
    "provider.stream": REQUEST,
    "hook.handle": HookEvent.before_tool_call("bash", {}),
    "settings.editor.open": EditorOpen("general", "colour"),
    "info.get": None,
    "sidecar.spawn_args": None,
    "plain/known": None,
}


@both_runtimes
@pytest.mark.parametrize("method", ["shutdown", "info.get", "sidecar.spawn_args"])
async def test_members_that_a_later_host_adds_are_ignored(runtime: str, method: str) -> None:
    async with hosted(Plain(), runtime) as host:
        await host.call(method, {"reason": "x"})


@both_runtimes
@pytest.mark.parametrize("method", EARLY)
async def test_a_request_before_the_handshake_is_rejected_as_not_ready(runtime: str, method: str) -> None:
    params = EARLY[method]
    async with linked(Versatile(), runtime) as host:
        error = await refused(host, method, params)
        await initialize(host)
        await host.call(method, params)

    assert error.meaning is Meaning.NOT_READY


@both_runtimes
async def test_a_second_handshake_is_rejected_as_not_ready_and_changes_nothing(runtime: str) -> None:
    plain = Plain()
    async with hosted(plain, runtime) as host:
        error = await refused(host, INITIALIZE, build_initialize(plugin_id="other"))
        known = await host.call("plain/known")

    assert (error.meaning, known["as"]) == (Meaning.NOT_READY, "notes")
    assert plain.life == ["started", "stopped"]


class Slow(ExtensionServer):
    """Starts and ends when the host lets it."""

    id = "slow"

    def on_start(self) -> None:
        self.host.blocking.call("host/wait", "start")

    def on_stop(self) -> None:
        self.host.blocking.call("host/wait", "stop")

    @tool("Adds one.")
    def add(self, number: int) -> int:
        return number + 1


class Waits:
    """Calls of the extension that the test responds to."""

    def __init__(self, host: Peer) -> None:
        self.begun = {"start": anyio.Event(), "stop": anyio.Event()}
        self.may_end = {"start": anyio.Event(), "stop": anyio.Event()}

        @host.handle("host/wait")
        async def wait(params: list[str]) -> None:
            self.begun[params[0]].set()
            await self.may_end[params[0]].wait()


class SlowInLists(Slow):
    """The same, with params that JSON-RPC allows."""

    def on_start(self) -> None:
        self.host.blocking.call("host/wait", ["start"])

    def on_stop(self) -> None:
        self.host.blocking.call("host/wait", ["stop"])


@both_runtimes
async def test_while_an_extension_starts_and_ends_requests_are_rejected_as_not_ready(runtime: str) -> None:
    async with linked(SlowInLists(), runtime) as host:
        waits = Waits(host)
        async with anyio.create_task_group() as group:
            group.start_soon(initialize, host)
            await waits.begun["start"].wait()
            early = await refused(host, TOOL_CALL, ToolCall("add", {"number": 1}))
            twice = await refused(host, INITIALIZE, build_initialize())
            waits.may_end["start"].set()
        assert await use_tool(host, "add", number=1) == 2
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: host.call(SHUTDOWN, timeout=5))
            await waits.begun["stop"].wait()
            late = await refused(host, TOOL_CALL, ToolCall("add", {"number": 1}))
            waits.may_end["stop"].set()
        closed = await host.wait_closed()

    assert {error.meaning for error in (early, twice, late)} == {Meaning.NOT_READY}
    assert closed.reason is DisconnectReason.REMOTE_CLOSE


# -- the start


class Failing(ExtensionServer):
    id = "failing"

    def __init__(self) -> None:
        self.starts = 0
        self.has_stopped = False

    def on_start(self) -> None:
        self.starts += 1
        if self.starts == 1:
            raise RpcError(Meaning.QUOTA, "no room")

    def on_stop(self) -> None:
        self.has_stopped = True


@both_runtimes
async def test_a_start_that_fails_is_the_response_and_may_be_tried_again(runtime: str) -> None:
    failing = Failing()
    async with linked(failing, runtime) as host:
        error = await refused(host, INITIALIZE, build_initialize())
        await initialize(host)

    assert (error.meaning, error.message) == (Meaning.QUOTA, "no room")
    assert failing.has_stopped


@both_runtimes
async def test_an_extension_that_never_started_is_not_stopped(runtime: str) -> None:
    failing = Failing()
    async with linked(failing, runtime) as host:
        await refused(host, INITIALIZE, build_initialize())

    assert not failing.has_stopped


async def test_a_coroutine_may_use_the_host_while_the_handshake_is_open() -> None:
    class Eager(ExtensionServer):
        id = "eager"

        async def on_start(self) -> None:
            self.response = await self.host.call("host/add", [1, 2], returns=int)

    eager = Eager()
    async with linked(eager) as host:
        host.handle("host/add")(add)
        await initialize(host)

    assert eager.response == 3


def add(params: list[int]) -> int:
    return sum(params)


# -- the end


@both_runtimes
async def test_shutdown_gets_a_response_and_then_the_link_is_closed(runtime: str) -> None:
    plain = Plain()
    async with hosted(plain, runtime) as host:
        response = await host.call(SHUTDOWN)
        closed = await host.wait_closed()
        assert plain.life == ["started", "stopped"]

    assert (response, closed.reason) == (None, DisconnectReason.REMOTE_CLOSE)
    assert plain.life == ["started", "stopped"]


@both_runtimes
async def test_shutdown_before_the_handshake_gets_a_response_too(runtime: str) -> None:
    plain = Plain()
    async with linked(plain, runtime) as host:
        await host.call(SHUTDOWN)
        await host.wait_closed()

    assert plain.life == []


@both_runtimes
async def test_the_end_of_the_link_stops_the_extension(runtime: str) -> None:
    plain = Plain()
    async with hosted(plain, runtime) as host:
        await host.aclose()

    assert plain.life == ["started", "stopped"]


@both_runtimes
async def test_a_stop_that_fails_is_logged_and_shutdown_still_gets_a_response(
    runtime: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(ExtensionServer):
        id = "broken"

        def on_stop(self) -> None:
            raise ValueError("the file is gone")

    async with hosted(Broken(), runtime, plugin_id="broken") as host:
        assert await host.call(SHUTDOWN) is None

    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("becket.ext.broken", "on_stop failed")
    ]


async def test_a_stop_continues_when_the_host_leaves_in_the_middle_of_it() -> None:
    class Slow(ExtensionServer):
        id = "slow"

        def __init__(self) -> None:
            self.has_begun, self.may_end = anyio.Event(), anyio.Event()
            self.has_ended = False

        async def on_stop(self) -> None:
            self.has_begun.set()
            await self.may_end.wait()
            self.has_ended = True

    slow = Slow()
    async with linked(slow) as host:
        await initialize(host)
        async with anyio.create_task_group() as group:
            group.start_soon(leave_alone, host)
            await slow.has_begun.wait()
            await host.aclose()
        slow.may_end.set()

    assert slow.has_ended


async def leave_alone(host: Peer) -> None:
    with pytest.raises(ConnectionError):
        await host.call(SHUTDOWN, timeout=5)


# -- an object and its links


async def test_one_object_serves_one_host_at_a_time_and_another_afterwards() -> None:
    notes = Notes()
    async with hosted(notes):
        with pytest.raises(LocalProtocolError, match="already"):
            async with linked(notes):
                pass
    async with hosted(notes) as host:
        assert await host.call("notes/stats", {"since": 4}) == {"notes": 4}


def test_without_a_host_calls_are_refused() -> None:
    notes = Notes()

    for ask in (lambda: notes.host, lambda: notes.config, lambda: notes.root):
        with pytest.raises(LocalProtocolError, match="has no host yet"):
            ask()


async def test_before_the_handshake_there_is_no_configuration() -> None:
    plain = Plain()
    async with linked(plain):
        with pytest.raises(LocalProtocolError, match="no configuration"):
            _ = plain.config
        assert plain.root is None


@both_runtimes
async def test_an_extension_without_an_id_is_not_served(runtime: str) -> None:
    class Nameless(ExtensionServer): ...

    with pytest.raises(TypeError, match="Nameless has no `id`"):
        async with linked(Nameless(), runtime):
            pass


async def test_a_link_that_cannot_be_opened_leaves_the_object_free() -> None:
    plain = Plain()
    with pytest.raises(RuntimeError, match="no framing"):
        async with plain.over(memory_transports()[0], framing=broken):
            pass
    with socket.socket() as sock, pytest.raises(RuntimeError, match="no framing"):
        plain.blocking_over(FdTransport.from_socket(sock), framing=broken).__enter__()

    async with hosted(plain) as host:
        assert await use_tool(host, "add", number=1) == 2


def broken(limits: Any) -> Any:
    raise RuntimeError("no framing")


async def test_nothing_is_used_that_the_host_has_not_announced() -> None:
    script = Script()

    class Asks(ExtensionServer):
        id = "asks"

        @tool("Asks.")
        async def ask(self) -> None:
            await self.host.call("host/ask")

    async with Asks().over(script):
        script.send(request(1, "initialize", {**OLD}))
        await script.receive()
        script.send(request(2, "tool.call", {"name": "ask", "input": {}}))
        called = await script.receive()
        script.leave()

    assert "params" not in called


OLD = {
    "synaps_version": "0.1.0",
    "extension_protocol_version": 1,
    "plugin_id": "asks",
    "plugin_root": None,
    "config": {},
}


async def test_null_means_no_params() -> None:
    script = Script()
    async with Plain().over(script):
        script.send(request(1, "initialize", {**OLD}))
        received = [await script.receive()]
        for number, method in enumerate(["info.get", "sidecar.spawn_args", "plain/known", "shutdown"]):
            script.send({**request(number, method), "params": None})
            received.append(await script.receive())
        script.leave()

    assert all("result" in message for message in received)
    assert received[1]["result"] == {
        "build": {"backend": "cpu", "version": "2"},
        "capabilities": [{"kind": "ocr", "name": "Tess"}],
    }
    assert received[2]["result"] == {}


def test_a_blocking_extension_serves_in_the_thread_that_waits() -> None:
    one, other = socket.socketpair()
    with (
        BlockingPeer(FdTransport.from_socket(one), dialect="native") as host,
        Plain().blocking_over(FdTransport.from_socket(other)) as peer,
    ):
        host.limit_features(())

        def converse() -> list[Any]:
            return [host.call(INITIALIZE, build_initialize(())).protocol_version, host.call(SHUTDOWN)]

        conversation = Started(converse)
        lost = peer.serve()
        results = conversation.result()  # before the host closes, which would fail its call

    assert results == [1, None]
    assert lost.reason is DisconnectReason.LOCAL_CLOSE
