"""What any dialect with its own mapping can rely on, for host and extension."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from tests.dialects.sample_dialect import BYE, SKETCHED, load_mapping_of_sketch

from becket import Context, ExtensionServer
from becket.contract.commands import Text
from becket.contract.hooks import Block, HookEvent, HookKind, HookResult
from becket.dialects import Dialect, DialectRegistry
from becket.dialects.link_state import LinkState, WireRequest
from becket.dialects.mapping import ContractMapping, identity
from becket.errors import HandshakeFailed, NotSupported, RemoteError
from becket.extension import CommandOutput, command, handles, hook, tool
from becket.host.starting.connect import connect_extension
from becket.testing import connected

pytestmark = pytest.mark.loops
MINUTE = 60


class Sketch(ExtensionServer):
    id, version = "sketch", "3.1.0"

    def __init__(self) -> None:
        self.cancelled = anyio.Event()
        self.begun = anyio.Event()

    @tool("Says it twice.")
    async def twice(self, text: str, meta: dict[str, str] | None = None) -> str:
        return f"{text}{text}{'' if meta is None else meta['who']}"

    @tool("Fails.")
    async def fail(self) -> str:
        raise ValueError("a secret")

    @tool("Reports.")
    async def report(self, ctx: Context) -> str:
        await ctx.progress({"half": True})
        return "done"

    @tool("Remembers.")
    def remember(self, text: str) -> int:
        return self.host.blocking.memory.append(text).timestamp_ms

    @tool("Asks what the host cannot be asked.")
    async def configure(self) -> str:
        try:
            return str(await self.host.config.get("colour"))
        except NotSupported as error:
            return str(error)

    @tool("Writes to the log.")
    async def note(self) -> None:
        self.host.log("too much", level="debug")
        self.host.log("just right")

    @command("count")
    async def count(self, args: list[str], out: CommandOutput) -> None:
        for word in args:
            await out.text(word)
            await out.system("not to be said in this dialect")

    @command("break")
    async def broken(self, args: list[str], out: CommandOutput) -> None:
        raise ValueError("a secret")

    @command("wait")
    async def wait(self, args: list[str], out: CommandOutput) -> None:
        self.begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()

    @hook("before_tool_call")
    async def guard(self, event: HookEvent) -> HookResult | None:
        return Block("no") if event.tool_name == "rm" else None


def sketch(**options: object):  # type: ignore[no-untyped-def]
    grants = ["tools.register", "tools.intercept", "memory.write"]
    return connected(Sketch(), dialect=SKETCHED, grants=grants, **options)


async def test_a_tool_is_called_by_the_method_of_the_dialect() -> None:
    async with sketch() as (host, _):
        assert [tool.name for tool in host.tools] == ["twice", "fail", "report", "remember", "configure", "note"]
        assert await host.call_tool("twice", {"text": "ho"}) == "hoho"


async def test_the_handshake_result_is_available() -> None:
    async with sketch() as (host, _):
        assert host.extra == "3.1.0"
        assert host.hooks == (HookKind.BEFORE_TOOL_CALL,)


async def test_a_step_of_the_handshake_that_fails_may_be_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with sketch():
        pass
    assert "sketch: it has no extras" in caplog.text


async def test_a_failure_becomes_a_response_where_the_dialect_has_one_for_it(caplog: pytest.LogCaptureFixture) -> None:
    async with sketch() as (host, _):
        assert await host.call_tool("fail") == "failed: internal error"


async def test_values_that_the_host_adds_to_a_call_are_added_after_the_input_check() -> None:
    async with sketch() as (host, _):
        assert await host.call_tool("twice", {"text": "ho"}, meta={"who": "!"}) == "hoho!"


async def test_a_native_link_has_no_mapping_for_it() -> None:
    async with connected(Sketch(), grants=["tools.register", "tools.intercept"]) as (host, _):
        with pytest.raises(NotSupported, match="native"):
            await host.call_tool("twice", {"text": "ho"}, meta={"who": "!"})


async def test_progress_is_sent_as_the_dialect_defines_it() -> None:
    heard: list[object] = []
    async with sketch() as (host, _):
        host.peer.on("still")(lambda params: heard.append(params))
        assert await host.call_tool("report") == "done"
    assert heard == [{"half": True}]


async def test_the_extension_calls_the_host_by_the_methods_of_the_dialect() -> None:
    async with sketch() as (host, _):
        assert int(await host.call_tool("remember", {"text": "milk"})) > 0


async def test_a_gated_method_stays_gated_under_another_name() -> None:
    async with connected(Sketch(), dialect=SKETCHED, grants=["tools.register"]) as (host, _):
        with pytest.raises(RemoteError):
            await host.peer.call("run", ["nothing"])
        assert "failed: " in await host.call_tool("remember", {"text": "milk"})


async def test_an_extension_call_that_the_dialect_lacks_is_refused_before_anything_is_sent() -> None:
    async with sketch() as (host, _):
        assert "the dialect `sketched` does not define it" in await host.call_tool("configure")


async def test_a_host_call_that_the_dialect_lacks_is_refused_before_anything_is_sent() -> None:
    async with sketch() as (host, _):
        with pytest.raises(NotSupported, match=r"`provider\.complete` is not supported: the dialect `sketched`"):
            await host.complete("local", "small", messages=[])
        with pytest.raises(NotSupported, match=r"info\.get"):
            await host.info()


async def test_a_command_that_is_acknowledged_at_once_has_its_events_and_ends_with_the_last() -> None:
    async with sketch() as (host, _), host.invoke_command("count", ["a", "b"]) as run:
        texts = [event.content async for event in run if isinstance(event, Text)]
        assert texts == ["a", "b"]
        assert await run.result() == "ab"


async def test_a_call_that_fails_after_its_acknowledgement_fails() -> None:
    async with sketch() as (host, _), host.invoke_command("break") as run:
        with pytest.raises(RemoteError, match="internal error"):
            await run.result()


async def test_an_abandoned_call_is_ended_by_its_own_request() -> None:
    with anyio.fail_after(MINUTE):
        async with sketch() as (host, server):
            async with host.invoke_command("wait"):
                await server.begun.wait()
            await server.cancelled.wait()


async def test_to_end_what_does_not_run_gets_a_response_all_the_same() -> None:
    async with sketch() as (host, _):
        assert await host.peer.call("stop", {"run": 99}) == {}


async def test_hooks_are_called_by_the_methods_of_the_dialect() -> None:
    async with sketch() as (host, _):
        refused = await host.handle_hook(HookEvent(HookKind.BEFORE_TOOL_CALL, tool_name="rm"))
        assert refused == Block("no")


async def test_log_messages_are_sent_unless_the_dialect_drops_them(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "becket.ext.sketch")
    async with sketch() as (host, _):
        await host.call_tool("note")
    received = [record.getMessage() for record in caplog.records if record.name == "becket.ext.sketch"]
    assert received == ["sketch: just right"]


async def test_requests_of_the_dialect_are_served() -> None:
    async with sketch() as (host, _):
        assert await host.peer.call("count") == 6
        assert await host.peer.call("beat") == "on"


async def test_shutdown_has_the_reason() -> None:
    async with sketch() as (host, _):
        assert await host.peer.call("bye", ["enough"], timeout=MINUTE) == "see you"


async def test_the_methods_of_the_contract_are_not_served_under_their_own_names() -> None:
    async with sketch() as (host, _):
        with pytest.raises(RemoteError, match=r"tool\.call"):
            await host.peer.call("tool.call", {"name": "twice", "input": {"text": "ho"}})


async def test_a_handshake_that_the_extension_refuses_fails() -> None:
    with pytest.raises(HandshakeFailed, match="somebody else is meant"):
        async with connected(Sketch(), dialect=SKETCHED, id="other"):
            pass


PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from becket import DIALECTS
from becket.extension import ExtensionServer, tool
from tests.dialects.sample_dialect import SKETCHED
DIALECTS.add(SKETCHED)

class Plain(ExtensionServer):
    id, version = "plain", "1.0.0"

    @tool("Says it twice.")
    {async_}def twice(self, text: str) -> str:
        return text * 2

Plain().run()
"""


@pytest.mark.parametrize("async_", ["", "async "], ids=["plain", "on a loop"])
async def test_a_program_detects_the_dialect_of_its_host_from_the_first_frame(tmp_path: Path, async_: str) -> None:
    program = tmp_path / "plain.py"
    program.write_text(PROGRAM.format(root=str(Path(__file__).parents[2]), async_=async_), encoding="utf-8")
    for dialect in (SKETCHED, "native"):
        connecting = connect_extension([sys.executable, program], dialect=dialect, grants=["tools.register"])
        with anyio.fail_after(MINUTE):
            async with connecting as host:
                assert await host.call_tool("twice", {"text": "ho"}) == "hoho"


REFUSED = PROGRAM.replace('id, version = "plain"', 'id, version = "somebody-else"')


@pytest.mark.parametrize("async_", ["", "async "], ids=["plain", "on a loop"])
async def test_a_program_that_cannot_serve_its_host_reports_why_and_ends(tmp_path: Path, async_: str) -> None:
    program = tmp_path / "plain.py"
    program.write_text(REFUSED.format(root=str(Path(__file__).parents[2]), async_=async_), encoding="utf-8")
    output: list[str] = []
    connecting = connect_extension([sys.executable, program], id="plain", dialect=SKETCHED, on_stderr=output.append)
    with anyio.fail_after(MINUTE), pytest.raises(HandshakeFailed, match="somebody else is meant"):
        await connecting
    assert output == ["somebody-else: somebody else is meant"]


class Own(Sketch):
    @handles("start")
    async def start_myself(self, params: dict[str, Any]) -> str:
        return "mine"


async def test_handlers_of_the_author_override_those_of_the_dialect() -> None:
    async with connected(Own(), dialect=SKETCHED, grants=["tools.register"]) as (host, _):
        assert await host.peer.call("start", {"run": 1, "what": "count", "with": []}) == "mine"


def without_a_cancel() -> ContractMapping:
    mapping = load_mapping_of_sketch()
    method_mapping = msgspec.structs.replace(
        mapping.methods["command.invoke"], cancel_method=None, correlation_key=identity
    )
    return msgspec.structs.replace(mapping, methods={**mapping.methods, "command.invoke": method_mapping})


async def test_a_method_that_cannot_be_cancelled_needs_no_key() -> None:
    dialect = msgspec.structs.replace(SKETCHED, load_mapping=without_a_cancel)
    async with (
        connected(Sketch(), dialect=dialect, grants=["tools.register"]) as (host, _),
        host.invoke_command("count", ["a"]) as run,
    ):
        assert await run.result() == "a"


@pytest.mark.parametrize("kills_first", [False, True])
async def test_a_dialect_that_kills_first_sends_no_shutdown(kills_first: bool) -> None:
    requested: list[str] = []

    def encode_shutdown(state: LinkState) -> WireRequest:
        requested.append(state.shutdown_reason)
        return WireRequest(BYE, [state.shutdown_reason])

    defaults = msgspec.structs.replace(SKETCHED.host_defaults, kills_before_shutdown=kills_first)
    dialect = msgspec.structs.replace(
        SKETCHED,
        host_defaults=defaults,
        load_mapping=lambda: msgspec.structs.replace(load_mapping_of_sketch(), encode_shutdown=encode_shutdown),
    )
    async with connected(Sketch(), dialect=dialect, grants=["tools.register"]) as (host, _):
        await host.shutdown("enough")
    assert ("enough" in requested) is not kills_first


def test_a_dialect_with_other_host_defaults_can_replace_one() -> None:
    mine = Dialect(name="mine")
    dialects = DialectRegistry((mine,), ())
    dialects.replace(msgspec.structs.replace(mine, responds_to_invalid=False))
    assert not dialects["mine"].responds_to_invalid


def test_a_custom_dialect_can_be_registered_once() -> None:
    mine = Dialect(name="mine")
    dialects = DialectRegistry((), ())
    dialects.add(mine)
    dialects.add(mine)
    assert dialects["mine"] is mine
    with pytest.raises(ValueError, match="already"):
        dialects.add(Dialect(name="mine"))
