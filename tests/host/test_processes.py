"""Extensions as processes: written from the contract alone or on becket, and those that fail."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.host import plain_extensions

from becket import ConnectionLost, Limits, PeerCrashed, StartFailed
from becket.contract.commands import CommandDone, Text
from becket.contract.hooks import Block, HookEvent
from becket.contract.providers import ProviderDone, ProviderResult, TextDelta, user
from becket.contract.tasks import TaskEnded, TaskStarted
from becket.errors import BadCapabilities, HandshakeFailed, VersionMismatch
from becket.host.starting.connect import connect_extension
from becket.testing import ProcessWatch

pytestmark = [pytest.mark.loops, pytest.mark.process]

QUICK = Limits(stdin_grace=0.05, term_grace=0.05, flush_grace=0.05)
GRANTS = ("tools.register", "providers.register", "tools.intercept", "memory.read", "memory.write")


def program(part: str) -> list[str]:
    return [sys.executable, "-I", "-S", plain_extensions.__file__, part]


def starting(part: str, **options: Any) -> Any:
    return connect_extension(program(part), **({"id": "notes", "grants": GRANTS, "limits": QUICK} | options))


# -- those that start


async def test_an_extension_of_the_first_contract_version_works_unchanged() -> None:
    with anyio.fail_after(60):
        async with starting("notes") as notes:
            assert notes.features == frozenset()
            assert await notes.call_tool("echo", {"text": "milk"}) == '{"text": "milk"}'
            async with notes.stream("local", "small", messages=[user("hi")]) as response:
                events = [event async for event in response]
            assert events == [TextDelta("good "), TextDelta("day"), ProviderDone()]
            assert await response.result() == ProviderResult.of_text("good day")
            async with notes.invoke_command("x", ["a", "b"]) as run:
                output = [event async for event in run]
            assert output == [TaskStarted("1", "Working"), Text("a b"), TaskEnded("1"), CommandDone()]
            blocked = await notes.handle_hook(HookEvent.before_tool_call("bash", {}))
            assert blocked == Block("before_tool_call")
            process = notes.peer.process
    assert process.has_exited
    assert process.exit_code == 0


async def test_memory_can_be_used_while_an_extension_starts() -> None:
    with anyio.fail_after(60):
        async with starting("remembers") as notes:
            assert notes.tools[0].description == "while starting"


async def test_an_extension_runs_in_its_folder_with_few_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "x")
    with anyio.fail_after(60):
        async with starting("reports_its_start", root=tmp_path, config={"a": 1}, env={"OWN": "1"}) as notes:
            about = json.loads(notes.capabilities[0].name)
    assert about["cwd"] == str(tmp_path)
    assert about["params"]["plugin_root"] == str(tmp_path)
    assert about["params"]["plugin_id"] == "notes"
    assert about["params"]["config"] == {"a": 1}
    assert "OWN" in about["env"]
    assert "MY_SECRET" not in about["env"]


async def test_a_folder_to_run_in_may_be_another_one(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with starting("reports_its_start", cwd=tmp_path) as notes:
            about = json.loads(notes.capabilities[0].name)
    assert about["cwd"] == str(tmp_path)
    assert about["params"]["plugin_root"] is None


async def test_an_extension_that_dies_ends_its_calls_with_its_exit_code_and_stderr() -> None:
    with anyio.fail_after(60):
        async with starting("notes") as notes:
            with pytest.raises(PeerCrashed) as caught:
                await notes.peer.call("tool.call", {"name": "crash", "input": {}})
            assert caught.value.exit_code == 3
            with pytest.raises(ConnectionLost):
                await notes.call_tool("echo")


# -- their log


async def test_log_records_reach_the_log_with_their_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "becket.ext.notes")
    with anyio.fail_after(60):
        async with starting("logs"):
            pass
    records = [record for record in caplog.records if record.name == "becket.ext.notes"]
    assert {(record.levelno, record.getMessage()) for record in records} == {
        (logging.WARNING, "notes.index: the index is old"),
        (logging.INFO, "plain words"),
        (logging.ERROR, "notes: \\x1b[2Jred"),
        (logging.ERROR, "notes: first"),
        (logging.ERROR, "notes: second \\x1b[0m"),
    }


async def test_stderr_may_be_redirected(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "becket.ext.notes")
    lines: list[str] = []
    with anyio.fail_after(60):
        async with starting("logs", on_stderr=lines.append):
            pass
    assert lines == ["WARNING:notes.index:the index is old", "plain words", "ERROR:notes:\\x1b[2Jred"]
    assert [record.getMessage() for record in caplog.records if record.name == "becket.ext.notes"] == [
        "notes: first",
        "notes: second \\x1b[0m",
    ]


# -- those that do not start, and of which nothing is left


async def failed(part: str, **options: Any) -> BaseException:
    with anyio.fail_after(60), pytest.raises((StartFailed, HandshakeFailed)) as caught:
        async with starting(part, **options):
            pass
    return caught.value


async def test_an_extension_that_never_responds_is_ended_and_its_stderr_reported() -> None:
    error = await failed("silent", limits=QUICK.but(handshake=2.0))
    assert isinstance(error, HandshakeFailed)
    assert "within 2 s" in error.because
    assert "still thinking" in error.because


async def test_an_extension_that_does_not_even_read_is_ended_too() -> None:
    assert isinstance(await failed("deaf", limits=QUICK.but(handshake=0.1)), HandshakeFailed)


async def test_the_error_for_a_crash_has_the_reason() -> None:
    error = await failed("crashes")
    assert isinstance(error, StartFailed)
    assert error.id == "notes"
    assert error.exit_code == 1
    assert "ValueError: no index" in error.stderr_tail
    assert "ValueError: no index" in str(error)


async def test_the_error_for_an_immediate_exit_has_the_code() -> None:
    error = await failed("exits")
    assert isinstance(error, StartFailed)
    assert error.exit_code == 0


async def test_the_error_for_an_extension_that_prints_on_its_stdout_has_the_reason() -> None:
    error = await failed("prints")
    assert isinstance(error, HandshakeFailed)
    assert "Welcome to notes" in error.because


async def test_an_extension_of_another_version_is_ended() -> None:
    error = await failed("of_tomorrow")
    assert isinstance(error, VersionMismatch)
    assert error.given == 2


async def test_an_extension_that_declares_what_it_must_not_is_ended() -> None:
    error = await failed("forgets_itself")
    assert isinstance(error, BadCapabilities)
    assert error.problems[0][1] == "registered a tool with an empty tool name"


async def test_a_missing_program_is_named() -> None:
    with pytest.raises(StartFailed):
        async with connect_extension(["/no/such/notes"]):
            pass


async def test_a_cancelled_start_leaves_no_process() -> None:
    pids: list[int] = []
    began = anyio.Event()

    def note(line: str) -> None:
        pids.append(int(line))
        began.set()

    code = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(60)"
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def start() -> None:
                command = [sys.executable, "-I", "-S", "-c", code]
                async with connect_extension(command, id="notes", limits=QUICK, on_stderr=note):
                    pass

            tasks.start_soon(start)
            await began.wait()
            with ProcessWatch(pids[0]) as child:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await child.gone()


# -- with the kit

KIT = """
import logging
from becket.extension import ExtensionServer, tool

class Notes(ExtensionServer):
    id, version = "notes", "1"

    @tool("Says it again.")
    def echo(self, text: str) -> str:
        print("this must not reach the wire")
        logging.getLogger("notes.echo").error("said %s", text)
        return text

if __name__ == "__main__":
    Notes().run()
"""


async def test_an_extension_written_with_the_kit_works_as_a_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "notes.py"
    file.write_text(KIT, encoding="utf-8")
    with anyio.fail_after(60):
        async with connect_extension(
            [sys.executable, os.fspath(file)], grants=["tools.register"], limits=QUICK.but(stdin_grace=2.0)
        ) as notes:
            assert notes.id == "notes"
            assert "cancel" in notes.features
            assert await notes.call_tool("echo", {"text": "milk"}) == "milk"
            process = notes.peer.process
            assert process is not None
    assert process.exit_code == 0
    printed = [(record.levelno, record.getMessage()) for record in caplog.records if record.name == "becket.ext.notes"]
    assert (logging.ERROR, "notes.echo: said milk") in printed


async def test_an_unknown_option_is_an_error() -> None:
    options: dict[str, Any] = {"grant": ["memory.read"]}
    with pytest.raises(TypeError, match="grant"):
        await connect_extension(["true"], **options)


FAILING = """
import sys
from becket.extension import ExtensionServer

class Notes(ExtensionServer):
    id, version = "notes", "1"

    def on_start(self):
        {failure}

Notes().run()
"""


@pytest.mark.parametrize(
    ("failure", "printed"),
    [
        ("raise RuntimeError('the database is missing')", "RuntimeError: the database is missing"),
        ("sys.exit('cannot go on')", "SystemExit: cannot go on"),
    ],
)
async def test_an_extension_whose_start_fails_reports_the_reason(failure: str, printed: str) -> None:
    command = [sys.executable, "-c", FAILING.format(failure=failure)]
    with anyio.fail_after(60), pytest.raises(HandshakeFailed) as caught:
        async with connect_extension(command, id="notes", limits=QUICK.but(stdin_grace=2.0)):
            pass
    assert "it refused: internal error (-32603, incident " in caught.value.because
    assert caught.value.because.endswith(f"last line of stderr: {printed}")
