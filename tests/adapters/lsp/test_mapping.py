"""How a language server is an extension: its handshake, its commands, its log."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from becket.adapters.lsp.dialect import matches_first_frame
from becket.adapters.lsp.mapping import EXECUTE_COMMAND, MAPPING
from becket.contract.commands import CommandInvoke, Table, Text
from becket.contract.handshake import HostInfo
from becket.contract.log import LogLevel, LogRecord
from becket.contract.tasks import TaskEnded, TaskLogged, TaskStarted, TaskUpdated
from becket.dialects import find_dialect
from becket.dialects.handshake import HandshakeContext, HandshakeResult
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.errors import BadCapabilities, Meaning, NotSupported
from becket.extension import CommandOutput, ExtensionServer, command
from becket.framing.content_length import ContentLength
from becket.framing.json_lines import JsonLines
from becket.testing import connected

HOST = HostInfo("tester", "1.2")
COMMANDS = MAPPING.methods["command.invoke"]
LOGGED = MAPPING.notifications["$/log"]
STATE = LinkState("server")


def raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def shake_hands(
    response: object, **more: Any
) -> tuple[WireRequest, list[WireRequest | WireNotification], HandshakeResult]:
    steps = MAPPING.client_handshake(HandshakeContext(extension="server", host=HOST, **more))
    output = [steps.send(None)]  # type: ignore[arg-type]
    try:
        output.append(steps.send(raw(response)))
        while True:
            output.append(steps.send(raw(None)))
    except StopIteration as stop:
        assert isinstance(output[0], WireRequest)
        return output[0], output[1:], stop.value


def test_the_dialect_is_found_by_its_name_and_has_the_error_code_of_lsp_for_early_requests() -> None:
    dialect = find_dialect("lsp")

    assert dialect.error_codes[Meaning.NOT_READY] == -32002
    assert dialect.load_mapping is not None
    assert dialect.load_mapping() is MAPPING


# -- the handshake


def test_the_host_introduces_itself_as_a_client_of_the_folder_that_it_runs_in() -> None:
    opening, rest, _ = shake_hands({"capabilities": {}}, host_cwd="/home/me/a project", config={"fast": True})

    assert opening.method.name == "initialize"
    assert opening.params["clientInfo"] == {"name": "tester", "version": "1.2"}
    assert opening.params["rootUri"] == "file:///home/me/a%20project"
    assert opening.params["workspaceFolders"] == [{"uri": "file:///home/me/a%20project", "name": "a project"}]
    assert opening.params["initializationOptions"] == {"fast": True}
    assert rest == [WireNotification("initialized", {})]


def test_without_a_folder_there_is_no_root() -> None:
    opening, _, _ = shake_hands({"capabilities": {}})

    assert (opening.params["rootUri"], opening.params["workspaceFolders"]) == (None, None)
    assert opening.params["initializationOptions"] is None


def test_the_methods_that_the_host_serves_are_announced() -> None:
    nothing, _, _ = shake_hands({"capabilities": {}})
    serves = frozenset({"workspace/configuration", "window/workDoneProgress/create"})
    some, _, _ = shake_hands({"capabilities": {}}, host_methods=serves)

    assert not any(
        (
            nothing.params["capabilities"]["workspace"]["configuration"],
            nothing.params["capabilities"]["workspace"]["applyEdit"],
            nothing.params["capabilities"]["window"]["workDoneProgress"],
        )
    )
    assert some.params["capabilities"]["workspace"]["configuration"]
    assert some.params["capabilities"]["window"]["workDoneProgress"]


def test_the_capabilities_of_a_server_are_declared() -> None:
    response = {
        "capabilities": {"hoverProvider": True, "renameProvider": False, "textDocumentSync": 2},
        "serverInfo": {"name": "pylsp", "version": "1.9"},
    }
    _, _, handshake_result = shake_hands(response)

    assert [(one.kind, one.name, one.params) for one in handshake_result.capabilities.capabilities] == [
        ("lsp", "hover", True),
        ("lsp", "textDocumentSync", 2),
    ]
    assert handshake_result.info is not None
    assert handshake_result.info.build is not None
    assert (handshake_result.info.build.backend, handshake_result.info.build.version) == ("pylsp", "1.9")
    assert handshake_result.extra == response


def test_a_server_need_not_send_its_identity() -> None:
    _, _, handshake_result = shake_hands({"capabilities": {}, "serverInfo": None})

    assert handshake_result.info is not None
    assert handshake_result.info.build is not None
    assert handshake_result.info.build.backend == "server"


@pytest.mark.parametrize("response", [None, [], {}, {"capabilities": []}])
def test_a_response_without_capabilities_has_no_capabilities(response: object) -> None:
    with pytest.raises(BadCapabilities):
        shake_hands(response)


def test_the_end_is_a_request_and_a_notification() -> None:
    assert MAPPING.encode_shutdown is not None
    assert MAPPING.encode_exit is not None
    assert MAPPING.encode_shutdown(STATE).method.name == "shutdown"
    assert MAPPING.encode_exit(STATE) == WireNotification("exit")


# -- commands


def test_a_command_is_executed_with_the_run_as_its_token() -> None:
    request = COMMANDS.encode_request(CommandInvoke("fix", ("a.py",), "run-1"), STATE)

    assert request.method is EXECUTE_COMMAND
    assert request.params == {"command": "fix", "arguments": ["a.py"], "workDoneToken": "run-1"}


@pytest.mark.parametrize(
    ("value", "event"),
    [
        ({"kind": "begin", "title": "Index"}, TaskStarted("t", "Index")),
        ({"kind": "report", "percentage": 40, "message": "a.py"}, TaskUpdated("t", 40, 100, "a.py")),
        ({"kind": "report", "percentage": "much", "message": 5}, TaskUpdated("t")),
        ({"kind": "end", "message": "done"}, TaskEnded("t")),
    ],
)
def test_the_progress_of_a_command_is_reported_as_a_task(value: object, event: object) -> None:
    assert EXECUTE_COMMAND.events["$/progress"].decode(raw({"token": "t", "value": value})) == event


@pytest.mark.parametrize("value", [None, [1], {"kind": "other"}])
def test_invalid_progress_is_skipped(value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        EXECUTE_COMMAND.events["$/progress"].decode(raw({"token": "t", "value": value}))


def test_progress_belongs_to_the_run_with_its_token() -> None:
    belongs = EXECUTE_COMMAND.events["$/progress"].belongs
    assert belongs is not None

    assert belongs(raw({"token": "t", "value": 1}), {"workDoneToken": "t"})
    assert not belongs(raw({"token": "u", "value": 1}), {"workDoneToken": "t"})


def test_arguments_that_are_not_text_are_decoded_as_json() -> None:
    received = COMMANDS.decode_request(
        WireRequest(EXECUTE_COMMAND, {"command": "fix", "arguments": ["a", {"b": 1}]}), LinkState("x")
    )

    assert received == CommandInvoke("fix", ("a", '{"b":1}'), "run-1")
    assert COMMANDS.decode_request(WireRequest(EXECUTE_COMMAND, []), LinkState("x")) == CommandInvoke("", (), "run-1")


def notification_for(event: object, params: object) -> Any:
    assert COMMANDS.encode_event is not None
    notification = COMMANDS.encode_event(event, WireRequest(EXECUTE_COMMAND, params), STATE)
    return None if notification is None else (notification.method, notification.params)


@pytest.mark.parametrize(
    ("event", "value"),
    [
        (TaskStarted("t", "Index"), {"kind": "begin", "title": "Index"}),
        (TaskUpdated("t", 1, 4, "a.py"), {"kind": "report", "message": "a.py", "percentage": 25}),
        (TaskUpdated("t"), {"kind": "report"}),
        (TaskEnded("t"), {"kind": "end"}),
        (TaskEnded("t", "no disk"), {"kind": "end", "message": "no disk"}),
    ],
)
def test_tasks_are_reported_to_a_client_that_requested_progress(event: object, value: object) -> None:
    assert notification_for(event, {"workDoneToken": 7}) == ("$/progress", {"token": 7, "value": value})
    assert notification_for(event, {}) is None


def test_output_goes_to_the_log_of_a_client() -> None:
    assert notification_for(Text("hello"), {}) == ("window/logMessage", {"type": 3, "message": "hello"})
    assert notification_for(TaskLogged("t", "line"), None) == ("window/logMessage", {"type": 3, "message": "line"})
    assert notification_for(Table((), ()), {}) is None


# -- the log


def test_messages_for_the_log_have_levels_in_both_directions() -> None:
    assert LOGGED.decode({"type": 2, "message": "careful"}, STATE) == LogRecord(LogLevel.WARNING, "lsp", "careful")
    assert LOGGED.decode({"type": 9, "message": "odd"}, STATE).level is LogLevel.INFO
    assert LOGGED.decode(5, STATE) == LogRecord(LogLevel.INFO, "lsp", "")
    assert LOGGED.encode(LogRecord(LogLevel.CRITICAL, "x", "bad"), STATE) == WireNotification(
        "window/logMessage", {"type": 1, "message": "bad"}
    )


# -- an extension as a language server


@pytest.mark.parametrize(
    ("frame", "framing", "is_ours"),
    [
        (
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":1,"capabilities":{}}}',
            ContentLength,
            True,
        ),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":1,"capabilities":{}}}',
            JsonLines,
            False,
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}', ContentLength, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"other","params":{"processId":1,"capabilities":{}}}', ContentLength, False),
        (b"\xff", ContentLength, False),
    ],
)
def test_a_client_is_detected_by_its_first_message(frame: bytes, framing: type, is_ours: bool) -> None:
    assert matches_first_frame(frame, framing) is is_ours


class Indexer(ExtensionServer):
    id, version = "indexer", "0.3"

    @command("index")
    async def index(self, args: list[str], out: CommandOutput) -> None:
        """Indexes some files."""
        async with out.task("Index", total=2) as task:
            await task.advance()
        await out.error("one file was bad")


@pytest.mark.loops
async def test_host_and_extension_communicate_in_this_dialect() -> None:
    async with connected(Indexer(), dialect="lsp", config={"deep": 1}) as (extension, indexer):
        assert extension.extra["serverInfo"] == {"name": "indexer", "version": "0.3"}
        assert [one.name for one in extension.capabilities] == ["executeCommand"]
        assert indexer.config == {"deep": 1}
        async with extension.invoke_command("index", ["a"]) as run:
            events = [event async for event in run]
            await run.result()
        assert (type(events[0]), events[-2], type(events[-1])) == (
            TaskStarted,
            TaskUpdated(events[0].id, 50, 100),  # type: ignore[union-attr]
            TaskEnded,
        )
        with pytest.raises(NotSupported):
            await extension.sidecar_args()
