"""`becket invoke`: a command of an extension, drawn on a terminal, plain elsewhere, JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import BECKET, HOSTED, becket, here, json_lines, printed, write_extension
from tests.cli.terminals import CTRL_C, Terminal

from becket.cli.support.exit_codes import ExitCode
from becket.testing.transcripts.file_format import load_transcript

pytestmark = pytest.mark.process

TALKER = """
import asyncio
from becket.extension import CommandOutput, ExtensionServer, command

class Talker(ExtensionServer):
    id = "talker"
    version = "1.0.0"

    @command("repeat")
    async def repeat(self, args: list[str], out: CommandOutput) -> list[str]:
        await out.text("**bold** words")
        return args

    @command("mutter")
    async def mutter(self, args: list[str], out: CommandOutput) -> None:
        async with out.task("Muttering", total=2) as task:
            await task.advance(1)
            print("under my breath", flush=True)
            await out.text("aloud")

    @command("wait")
    async def wait(self, args: list[str], out: CommandOutput) -> None:
        async with out.task("Waiting", total=10) as task:
            await task.advance(3)
            await asyncio.Event().wait()

    @command("fail")
    async def fail(self, args: list[str], out: CommandOutput) -> None:
        await out.text("so far, so good")
        raise ValueError("secret")

Talker().run()
"""

# It knows nothing of becket, and sends output without its content.
GARBLER = """
import json, sys

def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
    sys.stdout.buffer.flush()

while header := sys.stdin.buffer.readline():
    sys.stdin.buffer.readline()
    request = json.loads(sys.stdin.buffer.read(int(header.split()[1])))
    result = None
    if request["method"] == "initialize":
        result = {"protocol_version": 1, "capabilities": {}}
    elif request["method"] == "command.invoke":
        run = request["params"]["request_id"]
        for event in ({"kind": "text"}, {"kind": "song"}, {"kind": "text", "content": "after all"}, {"kind": "done"}):
            send(method="command.output", params={"request_id": run, "event": event})
    if "id" in request:
        send(id=request["id"], result=result)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with two files of three lines."""
    place = tmp_path / "counted"
    place.mkdir()
    (place / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (place / "b.txt").write_text("one\n", encoding="utf-8")
    return place


@pytest.fixture
def talker(tmp_path: Path) -> tuple[str, ...]:
    """Returns the options for a host of the talker."""
    return ("--root", str(write_extension(tmp_path / "extensions", "talker", TALKER)), "--no-data", "--yes")


GUARD = """
from becket.contract.hooks import Block, Continue, HookEvent
from becket.extension import ExtensionServer, hook

class Guard(ExtensionServer):
    id = "guard"
    version = "1.0.0"

    @hook("before_tool_call")
    def check(self, event: HookEvent) -> Block | Continue:
        return Block("not that") if "forbidden" in str(event.tool_input) else Continue()

Guard().run()
"""


def test_the_output_of_a_host_command_is_unchanged_and_its_hooks_are_called(tmp_path: Path) -> None:
    root = write_extension(tmp_path / "extensions", "guard", GUARD, permissions=["tools.intercept"])
    plugin = root / "plugin" / ".synaps-plugin"
    plugin.mkdir(parents=True)
    talker = TALKER.replace("talker", "plugin")
    (root / "plugin" / "talker.py").write_text(talker, encoding="utf-8")
    extension = {"runtime": "process", "command": "python3", "args": ["talker.py"], "permissions": ["tools.register"]}
    commands = [{"name": "say", "command": "printf", "args": ["# %s\\n"]}, {"name": "fail", "command": "false"}]
    (plugin / "plugin.json").write_text(json.dumps({"extension": extension, "commands": commands}), encoding="utf-8")
    words = ("invoke", "--root", str(root), "--no-data", "--yes", "plugin")

    assert printed(*words, "say", "*hi*", "you") == "# *hi*\n# you\n"
    assert (failed := becket(*words, "fail")).returncode == ExitCode.FAILED
    assert "exited with code 1" in failed.stderr
    assert (blocked := becket(*words, "say", "forbidden")).returncode == ExitCode.DENIED
    assert "not that" in blocked.stderr


def test_without_a_terminal_the_output_is_plain_text(folder: Path) -> None:
    lines = printed("invoke", *HOSTED, "census", "census", str(folder)).splitlines()

    assert [line.split() for line in lines] == [
        ["Counting", "lines:", "started"],
        ["Counting", "lines:", "done"],
        ["kind", "files", "lines"],
        [".txt", "2", "3"],
    ]


def test_for_programs_each_event_is_a_line_of_json_and_the_last_has_the_result(folder: Path) -> None:
    events = json_lines("invoke", "--json", *HOSTED, "census", "census", str(folder))

    assert {"event": "table", "headers": ["kind", "files", "lines"], "rows": [[".txt", "2", "3"]]} in events
    updates = [event for event in events if event["event"] == "task_updated"]
    assert updates[-1]["current"] == 2
    assert events[-1] == {"event": "result", "result": {"files": 2, "lines": 3}}


def test_on_a_terminal_bars_and_tables_are_drawn(folder: Path) -> None:
    with Terminal([*BECKET, "invoke", *HOSTED, "census", "census", str(folder)]) as terminal:
        assert terminal.end() == 0

    assert "Counting lines" in terminal.text
    assert "━━━" in terminal.text
    assert "2/2" in terminal.text
    assert ".txt   2       3" in terminal.text
    assert "\x1b[" in terminal.raw


def test_without_colours_a_terminal_shows_the_same_text(folder: Path) -> None:
    with Terminal([*BECKET, "invoke", *HOSTED, "census", "census", str(folder)], NO_COLOR="1") as terminal:
        assert terminal.end() == 0

    assert "2/2" in terminal.text
    assert "\x1b[3" not in terminal.raw  # no colour of the foreground


def test_options_are_parsed_in_any_position_and_arguments_after_the_mark_go_to_the_command(
    talker: tuple[str, ...],
) -> None:
    words = ["--json", "-x", "--", "--help", "a b"]

    events = json_lines("invoke", "talker", "repeat", "first", *talker, "--json", "--", *words)

    assert events[-1]["result"] == ["first", *words]


def test_events_that_cannot_be_decoded_are_counted(tmp_path: Path) -> None:
    words = ("invoke", "--root", str(write_extension(tmp_path, "garbler", GARBLER)), "--no-data", "--yes", "garbler")

    done = becket(*words, "garble")
    events = json_lines(*words, "garble", "--json", stderr=done.stderr)

    assert (done.returncode, done.stdout) == (0, "after all\n")
    assert done.stderr == "warning: garbler: skipped 2 events that could not be decoded\n"
    assert events[-2:] == [{"event": "skipped", "skipped": 2}, {"event": "result", "result": None}]


def test_stderr_of_the_extension_is_shown_on_stderr(talker: tuple[str, ...]) -> None:
    done = becket("invoke", *talker, "talker", "mutter")

    assert done.returncode == 0
    assert "aloud\n" in done.stdout
    assert "talker: under my breath\n" in done.stderr


def test_stderr_of_the_extension_is_shown_above_its_bars(talker: tuple[str, ...]) -> None:
    with Terminal([*BECKET, "invoke", *talker, "talker", "mutter"]) as terminal:
        assert terminal.end() == 0

    assert "talker: under my breath" in terminal.text
    assert "aloud" in terminal.text


def test_markdown_is_drawn_on_a_terminal_and_left_alone_elsewhere(talker: tuple[str, ...]) -> None:
    assert printed("invoke", *talker, "talker", "repeat") == "**bold** words\n"
    with Terminal([*BECKET, "invoke", *talker, "talker", "repeat"]) as terminal:
        assert terminal.end() == 0
    assert "bold words" in terminal.text


def test_ctrl_c_ends_a_command_and_its_extension(talker: tuple[str, ...]) -> None:
    with Terminal([*BECKET, "invoke", *talker, "talker", "wait"]) as terminal:
        terminal.expect("Waiting")
        terminal.type(CTRL_C)
        assert terminal.end() == 130

    assert "Traceback" not in terminal.text


@pytest.mark.parametrize(
    ("command", "output"), [("fail", "internal error"), ("missing", "there is no command 'missing' here")]
)
def test_a_command_that_fails_is_reported_after_its_output(talker: tuple[str, ...], command: str, output: str) -> None:
    done = becket("invoke", *talker, "talker", command)

    assert done.returncode == 1
    assert output in done.stderr
    assert "secret" not in done.stdout
    assert done.stdout == ("so far, so good\n" if command == "fail" else "")


def test_a_run_can_be_recorded(talker: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    printed("invoke", "--trace", str(path), *talker, "talker", "repeat", "a")

    assert any(b"command.output" in getattr(entry, "body", b"") for entry in load_transcript(path).entries)


@pytest.mark.parametrize("words", [[], ["census"], ["--frobnicate", "census", "census"]])
def test_an_invalid_command_line_is_refused(words: list[str]) -> None:
    assert here("invoke", *words).exit_code == 2


def test_help_has_an_example() -> None:
    assert "becket invoke --root extensions census census" in here("invoke", "--help").stdout
