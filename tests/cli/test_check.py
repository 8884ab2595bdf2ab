"""`becket check`: good programs pass, and each thing that a program can do wrong is found and explained."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.cli.commands import BECKET, EXTENSIONS, here
from tests.cli.terminals import Terminal

from becket.cli.check import CheckRequest
from becket.cli.support.check_cases import NATIVE_CASES
from becket.cli.support.exit_codes import ExitCode
from becket.dialects import DIALECTS

pytestmark = pytest.mark.process

# An extension in the standard library alone; each program below changes one thing of it.
PROGRAM = """
import json, os, signal, sys, time

def read():
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.partition(b":")[2])
    if not length:
        at_end()
    return json.loads(sys.stdin.buffer.read(length))

def send(message):
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
    sys.stdout.buffer.flush()

def answer(message, **more):
    send({"jsonrpc": "2.0", "id": message["id"], **more})

def at_end():
    sys.exit(0)

def initialize(message):
    answer(message, result={"protocol_version": 1, "capabilities": {"tools": [TOOL]}})

def shutdown(message):
    answer(message, result=None)
    sys.exit(0)

def unknown(message):
    if "id" in message:
        answer(message, error={"code": -32601, "message": "unknown method"})

TOOL = {"name": "echo", "description": "Says it again.", "input_schema": {"type": "object"}}
"""
SERVE = """
while True:
    message = read()
    {"initialize": initialize, "shutdown": shutdown}.get(message["method"], unknown)(message)
"""

MANIFEST = 'id = "x"\nversion = "1.0.0"\ncommand = ["x"]\npermissions = []\n'

Findings = list[dict[str, str]]


def check(tmp_path: Path, change: str, *words: str) -> tuple[int, Findings]:
    """Returns the exit code and the findings for a program with a change."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + change + SERVE, encoding="utf-8")
    done = here("check", "--json", "--timeout", "2", "--no-conformance", *words, "--", sys.executable, str(path))
    received = json.loads(done.stdout)
    dialect = words[words.index("--dialect") + 1] if "--dialect" in words else "native"
    return done.exit_code, received["reports"][dialect]["findings"]


def wrong(tmp_path: Path, change: str, *words: str) -> list[tuple[str, str]]:
    """Returns the checks that failed or warned, with their level."""
    code, findings = check(tmp_path, change, *words)
    bad = [(one["check"], one["level"]) for one in findings if one["level"] in ("warning", "error")]
    assert code == (ExitCode.FAILED if any(level == "error" for _, level in bad) else ExitCode.DONE)
    return bad


# -- good programs


def test_a_good_program_passes_every_check(tmp_path: Path) -> None:
    code, findings = check(tmp_path, "")

    assert code == ExitCode.DONE
    assert [(one["check"], one["level"]) for one in findings] == [
        ("response", "ok"),
        ("handshake", "ok"),
        ("methods", "ok"),
        ("notifications", "ok"),
        ("tools", "skipped"),
        ("stdin", "ok"),
        ("framing", "ok"),
        ("shutdown", "ok"),
    ]
    assert "echo" in findings[1]["text"]


@pytest.mark.parametrize("name", ["census", "dice", "eliza", "guard", "notes"])
def test_the_examples_pass(name: str) -> None:
    folder = EXTENSIONS / name
    program = ["node", "dice.js"] if name == "dice" else ["python3", f"{name}.py"]

    done = here("check", "--no-conformance", "--folder", str(folder), "--", *program)

    assert done.exit_code == ExitCode.DONE, done.output
    assert not [line for line in done.stdout.splitlines() if line.startswith(("warning", "error"))]


def test_a_program_may_call_its_host_before_it_responds(tmp_path: Path) -> None:
    change = """
def initialize(message):
    for number, method in enumerate(["memory.append", "memory.query", "config.get", "config.set", "config.subscribe"]):
        send({"jsonrpc": "2.0", "id": number, "method": method, "params": {}})
        assert "result" in read()
    send({"jsonrpc": "2.0", "method": "log", "params": {}})
    answer(message, result={"protocol_version": 1, "features": ["progress"]})
"""
    assert wrong(tmp_path, change) == []


def test_calling_a_method_that_no_host_has_is_a_warning(tmp_path: Path) -> None:
    change = """
def initialize(message, old=initialize):
    for _ in range(2):
        send({"jsonrpc": "2.0", "id": "x", "method": "window.open"})
        assert read()["error"]["code"] == -32601
    old(message)
"""
    _, findings = check(tmp_path, change)

    (bad,) = [one for one in findings if one["level"] == "warning"]
    assert (bad["check"], bad["level"]) == ("calls", "warning")
    assert bad["text"].count("window.open") == 1


# -- tools, commands, cancellation and pings

ACTIVE = """
import pathlib
calls = pathlib.Path(__file__).with_name("calls")

def unknown(message):
    with calls.open("a", encoding="utf-8") as file:
        print(message["method"], json.dumps(message.get("params")), file=file)
    if message["method"] in ("$/ping", "tool.call", "command.invoke"):
        serve(message)
    elif "id" in message:
        answer(message, error={"code": -32601, "message": "unknown method"})

def serve(message):
    answer(message, result="done")

def initialize(message):
    capabilities = {"tools": [TOOL, {**TOOL, "name": "wipe", "read_only": False}]}
    answer(message, result={"protocol_version": 1, "features": FEATURES, "capabilities": capabilities})

TOOL["read_only"] = True
TOOL["input_schema"] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
FEATURES = ["cancel", "ping"]
"""


def calls_of(tmp_path: Path) -> list[tuple[str, Any]]:
    lines = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    return [(method, json.loads(params)) for method, _, params in (line.partition(" ") for line in lines)]


def test_tools_that_are_marked_as_read_only_are_called_and_others_are_not(tmp_path: Path) -> None:
    assert wrong(tmp_path, ACTIVE) == []

    called = [params for method, params in calls_of(tmp_path) if method == "tool.call"]
    assert {call["name"] for call in called} == {"echo"}
    assert all(call["input"] == {"text": "x"} for call in called)


def test_all_tools_are_called_on_request(tmp_path: Path) -> None:
    assert wrong(tmp_path, ACTIVE, "--call-tools") == []

    assert {params["name"] for method, params in calls_of(tmp_path) if method == "tool.call"} == {"echo", "wipe"}


def test_where_no_tool_is_marked_no_tool_is_called_and_the_report_has_a_hint(tmp_path: Path) -> None:
    code, findings = check(tmp_path, ACTIVE + "TOOL['read_only'] = False")

    (tools,) = [one for one in findings if one["check"] == "tools"]
    assert (code, tools["level"]) == (ExitCode.DONE, "skipped")
    assert "--call-tools" in tools["hint"]
    assert not [method for method, _ in calls_of(tmp_path) if method == "tool.call"]


def test_a_call_is_cancelled_and_a_ping_is_sent(tmp_path: Path) -> None:
    _, findings = check(tmp_path, ACTIVE)

    assert {"tools", "cancel", "ping"} <= {one["check"] for one in findings if one["level"] == "ok"}
    methods = [method for method, _ in calls_of(tmp_path)]
    assert methods.count("$/ping") == 1
    assert methods.count("tool.call") == 2
    assert methods.count("$/cancelRequest") == 1


def test_features_that_are_not_announced_are_not_sent(tmp_path: Path) -> None:
    assert wrong(tmp_path, ACTIVE + "FEATURES = []") == []

    assert not {"$/ping", "$/cancelRequest"} & {method for method, _ in calls_of(tmp_path)}


def test_a_command_is_run_on_request(tmp_path: Path) -> None:
    change = ACTIVE + (
        "def serve(message):\n"
        "    run = message['params'].get('request_id') if 'params' in message else None\n"
        "    frame = {'request_id': run, 'event': {'kind': 'text', 'content': 'hi'}}\n"
        "    if run: send({'jsonrpc': '2.0', 'method': 'command.output', 'params': frame})\n"
        "    answer(message, result=None)\n"
    )
    _, findings = check(tmp_path, change, "--command", "show 'all of them'")

    assert [one["level"] for one in findings if one["check"] == "commands"] == ["ok"]
    ((_, params),) = [call for call in calls_of(tmp_path) if call[0] == "command.invoke"]
    assert (params["command"], params["args"]) == ("show", ["all of them"])


def test_a_command_that_the_manifest_marks_as_read_only_is_run(tmp_path: Path) -> None:
    manifest = MANIFEST.replace("[]", '["tools.register"]') + '[[commands]]\nname = "wipe"\n'
    (tmp_path / "becket.toml").write_text(manifest, encoding="utf-8")
    _, findings = check(tmp_path, ACTIVE)
    assert [one["level"] for one in findings if one["check"] == "commands"] == ["skipped"]

    marked = manifest + '[[commands]]\nname = "show"\nread_only = true\n'
    (tmp_path / "becket.toml").write_text(marked, encoding="utf-8")
    assert wrong(tmp_path, ACTIVE) == []
    assert [params["command"] for method, params in calls_of(tmp_path) if method == "command.invoke"] == ["show"]


DECLARING = """
def initialize(message):
    capabilities = {"tools": [TOOL], "hooks": [{"hook": "before_tool_call"}]}
    answer(message, result={"protocol_version": 1, "capabilities": capabilities, "features": ["log"], "id": "z"})
"""


def test_a_permission_missing_in_the_manifest_is_an_error_since_no_host_would_start_it(tmp_path: Path) -> None:
    (tmp_path / "becket.toml").write_text(MANIFEST, encoding="utf-8")
    code, findings = check(tmp_path, DECLARING)

    bad = [one for one in findings if one["level"] == "error"]
    assert code == ExitCode.FAILED
    assert [(one["check"], "tools.register" in one["text"], "tools.intercept" in one["text"]) for one in bad] == [
        ("handshake", True, False),
        ("handshake", False, True),
    ]
    assert all("permissions" in one["hint"] for one in bad)
    assert "methods" in {one["check"] for one in findings}  # all else is checked too


def test_another_id_in_the_code_than_in_the_manifest_is_a_warning(tmp_path: Path) -> None:
    asks = MANIFEST.replace("[]", '["tools.register", "tools.intercept"]')
    (tmp_path / "becket.toml").write_text(asks, encoding="utf-8")

    _, findings = check(tmp_path, DECLARING)

    (bad,) = [one for one in findings if one["level"] == "warning"]
    assert (bad["check"], "`x`" in bad["text"], "`z`" in bad["text"]) == ("handshake", True, True)
    assert bad["hint"]


@pytest.mark.parametrize("line", ["", "'"])
def test_an_empty_command_line_is_refused(line: str) -> None:
    assert here("check", "--command", line, "--", "cat").exit_code == ExitCode.USAGE


FAILING = "def serve(message): answer(message, error={{'code': {code}, 'message': 'no'}})"
MALFORMED = """
def serve(message):
    send({"jsonrpc": "2.0", "method": "command.output", "params": PARAMS})
    answer(message, result=None)
"""


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param(FAILING.format(code=-32603), [("ping", "error"), ("tools", "warning")], id="internal error"),
        pytest.param(FAILING.format(code=-32602), [("ping", "error"), ("tools", "warning")], id="a fitting input"),
        pytest.param(FAILING.format(code=-32601), [("ping", "error"), ("tools", "error")], id="unknown tool"),
        pytest.param(FAILING.format(code=7), [("ping", "error")], id="an error of its own"),
        pytest.param(
            "def serve(message): message['method'] == '$/ping' and answer(message, result=None)",
            [("tools", "error")],
            id="a tool that does not respond",
        ),
        pytest.param(
            "def serve(message): message['method'] == 'tool.call' and answer(message, result=None)",
            [("ping", "error")],
            id="a ping that is not responded to",
        ),
        pytest.param("def serve(message): sys.exit(3)", [("ping", "error")], id="an end by a ping"),
        pytest.param(
            "def serve(message): sys.exit(3) if 'params' in message else answer(message, result=None)",
            [("tools", "error")],
            id="an end by a tool",
        ),
        pytest.param(
            "seen = []\n"
            "def serve(message):\n"
            "    seen.append(message['method'])\n"
            "    if seen.count('tool.call') < 2: answer(message, result=None)",
            [("cancel", "error")],
            id="a cancelled call that is not responded to",
        ),
    ],
)
def test_problems_in_calls_are_found(tmp_path: Path, change: str, found: list[tuple[str, str]]) -> None:
    assert wrong(tmp_path, ACTIVE + change) == found


@pytest.mark.parametrize("params", ['{"kind": "text"}', '{"request_id": "other", "kind": "text", "content": "x"}'])
def test_malformed_output_of_a_command_is_found(tmp_path: Path, params: str) -> None:
    change = ACTIVE + MALFORMED.replace("PARAMS", params) + "TOOL['read_only'] = False\nFEATURES = []\n"

    assert wrong(tmp_path, change, "--command", "show") == [("commands", "error")]


def test_a_tool_whose_input_cannot_be_derived_is_skipped(tmp_path: Path) -> None:
    pattern = {"type": "string", "pattern": "^[0-9]{4}-[a-f]$"}
    schema = {"type": "object", "properties": {"text": pattern}, "required": ["text"]}
    code, findings = check(tmp_path, f"{ACTIVE}TOOL['input_schema'] = {schema}")

    (tools,) = [one for one in findings if one["check"] == "tools"]
    assert (code, tools["level"]) == (ExitCode.DONE, "skipped")
    assert "examples" in tools["hint"]


# -- JUnit


def test_findings_are_written_as_junit(tmp_path: Path) -> None:
    report = tmp_path / "check.xml"
    change = ACTIVE + FAILING.format(code=-32601) + "\nTOOL['name'] = 'echo'"

    code, findings = check(tmp_path, change, "--junit", str(report))

    suite = ElementTree.parse(report).getroot()[0]
    cases = {case.attrib["name"].partition(":")[0]: case for case in suite}
    assert code == ExitCode.FAILED
    assert [*cases] == [case.id for case in NATIVE_CASES]
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    assert failed == {one["check"] for one in findings if one["level"] == "error"}
    assert {name for name, case in cases.items() if case.find("skipped") is not None} == {
        "commands",
        "conformance",
    }
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "skipped")}
    assert counts == {"tests": len(NATIVE_CASES), "failures": 2, "skipped": 2}


def test_junit_of_a_program_that_does_not_start_skips_the_rest(tmp_path: Path) -> None:
    report = tmp_path / "check.xml"

    here("check", "--junit", str(report), "--", "no-such-program")

    suite = ElementTree.parse(report).getroot()[0]
    assert [case.attrib["name"].partition(":")[0] for case in suite if case.find("skipped") is None] == ["start"]


def test_junit_has_no_characters_that_xml_forbids(tmp_path: Path) -> None:
    report = tmp_path / "check.xml"

    check(tmp_path, "sys.exit('\\x1b[31m\\x00<&')", "--junit", str(report))

    assert ElementTree.parse(report).getroot().find(".//failure") is not None


def test_a_report_that_cannot_be_written_is_an_error_of_files(tmp_path: Path) -> None:
    done = here("check", "--junit", str(tmp_path / "no" / "check.xml"), "--", "no-such-program")

    assert done.exit_code == ExitCode.FILES


# -- problems


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param("print('hello', flush=True)", [("stdout", "error")], id="a banner on stdout"),
        pytest.param("sys.exit('no')", [("response", "error")], id="it ends at once"),
        pytest.param("os.kill(os.getpid(), 9)", [("response", "error")], id="it is killed"),
        pytest.param("def initialize(message): pass", [("response", "error")], id="no response"),
        pytest.param(
            "def send(message): print(json.dumps(message), flush=True)",
            [("response", "error"), ("stdout", "error")],
            id="JSON lines instead of headers",
        ),
        pytest.param(
            "def send(message): os.write(1, b'Content-Length: x\\r\\n\\r\\n{}')",
            [("response", "error"), ("framing", "error")],
            id="a header that is none",
        ),
        pytest.param(
            "def initialize(message): answer(message, error={'code': 1, 'message': 'not now'})",
            [("handshake", "error")],
            id="it refuses",
        ),
        pytest.param(
            "def initialize(message): answer(message, result={'protocol_version': 2})",
            [("handshake", "error")],
            id="another version",
        ),
        pytest.param(
            "def initialize(message): answer(message, result={})", [("handshake", "error")], id="no version at all"
        ),
        pytest.param("TOOL['name'] = 'a:b'\nTOOL['description'] = ''", [("handshake", "error")] * 2, id="a bad tool"),
        pytest.param("TOOL['input_schema'] = {'type': 7}", [("handshake", "error")], id="a schema that is none"),
        pytest.param("def unknown(message): pass", [("methods", "error")], id="silence about unknown methods"),
        pytest.param("def unknown(message): sys.exit(3)", [("methods", "error")], id="an end by unknown methods"),
        pytest.param(
            "def unknown(message): 'id' in message and answer(message, result=None)",
            [("methods", "error")],
            id="a result for unknown methods",
        ),
        pytest.param(
            "def unknown(message): 'id' in message and answer(message, error={'code': 5, 'message': 'eh'})",
            [("methods", "warning")],
            id="another number for unknown methods",
        ),
        pytest.param(
            "def unknown(message): answer(message, error={'code': -32601, 'message': 'eh'})",
            [("notifications", "error")],
            id="it trips over an unknown notification",
        ),
        pytest.param(
            "def unknown(message): send({'jsonrpc': '2.0', 'id': message.get('id'),"
            " 'error': {'code': -32601, 'message': 'eh'}})",
            [("messages", "error")],
            id="it answers a notification",
        ),
        pytest.param(
            "def initialize(message, old=initialize): [old(message) for _ in range(2)]",
            [("messages", "error")],
            id="two answers",
        ),
        pytest.param(
            "def initialize(message, old=initialize): old(message | {'id': 99}); old(message)",
            [("messages", "error")],
            id="an answer that nobody asked for",
        ),
        pytest.param(
            "def unknown(message): 'id' in message and answer(message, error='eh')",
            [("methods", "warning"), *[("messages", "error")] * 2],
            id="an error that is no object",
        ),
        pytest.param(
            """
def unknown(message):
    if "id" in message:
        body = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"\\xff"}}' % message["id"]
        sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
        sys.stdout.buffer.flush()
""",
            [("methods", "error"), ("messages", "error")],
            id="an error that is not UTF-8",
        ),
        pytest.param(
            "def initialize(message, old=initialize): send([1]); send({'jsonrpc': '2.0'}); old(message)",
            [("messages", "error")] * 2,
            id="frames that are no messages",
        ),
        pytest.param(
            "def answer(message, **more): send({'id': message['id'], **more})",
            [("messages", "error")] * 3,
            id="messages without their version",
        ),
        pytest.param(
            "def unknown(message): 'id' in message and answer(message)",
            [("methods", "error"), *[("messages", "error")] * 2],
            id="an answer with nothing in it",
        ),
        pytest.param(
            "while True: send({'jsonrpc': '2.0', 'id': 1, 'method': 'config.get'})",
            [("response", "error")],
            id="a flood of questions",
        ),
        pytest.param(
            "while True: os.write(1, b'x' * 65536)",
            [("response", "error"), ("framing", "error"), ("stdout", "error")],
            id="a flood of text",
        ),
        pytest.param("def at_end(): time.sleep(60)", [("stdin", "error")], id="it outlives its stdin"),
        pytest.param("def at_end(): sys.exit(4)", [("stdin", "warning")], id="a bad exit code at the end"),
        pytest.param("shutdown = unknown", [("shutdown", "warning")], id="shutdown is unknown"),
        pytest.param(
            "def shutdown(message): sys.exit(5)", [("shutdown", "warning")], id="a bad exit code for shutdown"
        ),
        pytest.param("def shutdown(message): sys.exit(0)", [], id="an end without an answer is as good"),
        pytest.param(
            "def shutdown(message): signal.pause()", [("shutdown", "error")], id="it does not end when it is asked to"
        ),
        pytest.param(
            "def at_end(): os.write(1, b'Content-Length: 5\\r\\n\\r\\n{'); sys.exit(0)",
            [("framing", "error")],
            id="half a frame at the end",
        ),
    ],
)
def test_problems_are_found(tmp_path: Path, change: str, found: list[tuple[str, str]]) -> None:
    assert wrong(tmp_path, change) == found


def test_every_failed_check_has_a_reason_or_a_hint(tmp_path: Path) -> None:
    _, findings = check(tmp_path, "def send(message): print(json.dumps(message), flush=True)")

    assert "JSON lines" in findings[0]["hint"]
    assert "stderr" in findings[1]["hint"]


def test_the_last_stderr_lines_of_a_program_that_ends_are_shown(tmp_path: Path) -> None:
    _, findings = check(tmp_path, "sys.exit('the licence has expired')")

    assert "the licence has expired" in findings[0]["text"]


def test_a_program_that_echoes_its_input_is_not_an_extension() -> None:
    received = json.loads(here("check", "--json", "--timeout", "1", "--", "cat").stdout)

    assert not received["ok"]
    assert "echo its stdin" in str(received["reports"])


@pytest.mark.parametrize("program", ["no-such-program", __file__])
def test_a_program_that_cannot_be_started_is_reported(program: str) -> None:
    done = here("check", "--no-conformance", "--", program)

    assert done.exit_code == ExitCode.FAILED
    assert program in done.stdout


def test_child_processes_of_a_program_are_ended_with_it(tmp_path: Path) -> None:
    change = "import subprocess; subprocess.Popen(['sleep', '60'], stdin=subprocess.DEVNULL)"

    assert wrong(tmp_path, change) == []  # and the leak check of all tests finds nothing


# -- dialects


def test_auto_tries_every_dialect_and_selects_the_best(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + "initialize = unknown" + SERVE, encoding="utf-8")

    done = here("check", "--no-conformance", "--json", "--dialect", "auto", "--", sys.executable, str(path))

    received: dict[str, Any] = json.loads(done.stdout)
    assert done.exit_code == ExitCode.DONE
    assert received["dialect"] == "plain"
    well = {name for name, report in received["reports"].items() if report["ok"]}
    assert well == {"plain"}
    assert {*received["reports"]} == {*DIALECTS}


def test_auto_shows_the_detected_dialect(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + SERVE, encoding="utf-8")

    done = here("check", "--no-conformance", "--dialect", "auto", "--", sys.executable, str(path))

    first = done.stdout.splitlines()[0]
    assert first.startswith("native: yes; synaps: yes; nexo: no;")
    assert first.endswith("plain: yes")
    assert done.stderr == "no errors: a valid synaps extension\n"  # it announces no features


def test_plain_is_checked_without_a_handshake(tmp_path: Path) -> None:
    assert wrong(tmp_path, "", "--dialect", "plain") == []
    assert wrong(tmp_path, "def unknown(message): pass", "--dialect", "plain") == [("response", "error")]
    done = here("check", "--dialect", "plain", "--", "no-such-program")
    assert "no-such-program" in done.stdout


def test_a_program_without_messages_has_no_dialect() -> None:
    received = json.loads(here("check", "--json", "--timeout", "0.2", "--dialect", "auto", "--", "sleep", "9").stdout)

    assert received["dialect"] is None


# -- the command line


def test_an_invalid_id_is_refused() -> None:
    done = here("check", "--id", "a:b", "--", "cat")

    assert done.exit_code == ExitCode.USAGE
    assert "a:b" in done.stderr


def test_no_data_is_accepted_before_the_dashes_as_by_other_commands(tmp_path: Path) -> None:
    assert wrong(tmp_path, "", "--no-data") == []


@pytest.mark.parametrize("words", [("--nodata", "--", "cat"), ("--nodata", "cat"), ("x", "--", "cat")])
def test_an_unknown_option_is_named_and_starts_nothing(words: tuple[str, ...]) -> None:
    done = here("check", *words)

    assert done.exit_code == ExitCode.USAGE
    assert f"No such option: {words[0]}" in done.stderr


@pytest.mark.parametrize("words", [(), ("--",), ("--json",)])
def test_without_a_program_the_error_shows_where_to_put_it(words: tuple[str, ...]) -> None:
    done = here("check", *words)

    assert done.exit_code == ExitCode.USAGE
    assert "-- python3 notes.py" in done.stderr


def test_a_program_may_stand_without_dashes(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + SERVE, encoding="utf-8")

    assert here("check", "--no-conformance", sys.executable, "-X", "dev", str(path)).exit_code == ExitCode.DONE


@pytest.mark.parametrize("dialect", ["native", "synaps", "nexo", "morphir", "lsp", "mcp", "plain"])
def test_the_default_timeout_is_that_of_a_host_of_the_dialect(dialect: str) -> None:
    waits = CheckRequest(("cat",), None, None, None).build_subject(dialect).timeout

    assert waits == DIALECTS[dialect].host_limits.handshake
    assert CheckRequest(("cat",), None, None, 0.5).build_subject(dialect).timeout == 0.5


def test_options_behind_the_dashes_are_the_programs_own(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + "assert sys.argv[1:] == ['--json', '-x']" + SERVE, encoding="utf-8")

    assert here("check", "--no-conformance", "--", sys.executable, str(path), "--json", "-x").exit_code == ExitCode.DONE


def test_on_a_terminal_the_report_has_colours(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + "shutdown = unknown" + SERVE, encoding="utf-8")
    with Terminal([*BECKET, "check", "--no-conformance", "--", sys.executable, str(path)]) as terminal:
        assert terminal.end() == ExitCode.DONE

    assert "\x1b[32mok" in terminal.raw
    assert "\x1b[33mwarning" in terminal.raw
    assert "no errors" in terminal.text
