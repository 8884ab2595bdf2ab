"""`becket check` in the dialects of other systems: correct programs pass, problems are reported."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cli.commands import here

from becket.cli.support import checks
from becket.cli.support.exit_codes import ExitCode
from becket.dialects import DIALECTS

pytestmark = pytest.mark.process

DIALECT_EXAMPLES = Path(__file__).parents[2] / "examples" / "dialects"
PROGRAMS = {
    ("synaps", "journal"): ["python3", "journal.py"],
    ("nexo", "weather"): ["python3", "weather.py"],
    ("nexo", "lamp"): ["./lamp.sh"],
    ("roder", "workshop"): ["python3", "workshop.py"],
    ("roder", "dice"): ["node", "dice.js"],
    ("morphir", "."): ["python3", "validator.py"],
    ("cigen", "."): ["./cigen-provider-make"],
}


@pytest.mark.parametrize(("dialect", "folder"), PROGRAMS)
def test_a_program_of_another_system_passes(dialect: str, folder: str) -> None:
    command = PROGRAMS[dialect, folder]
    if command[0] == "node" and shutil.which("node") is None:
        pytest.skip("there is no Node here")

    done = here("check", "--dialect", dialect, "--folder", str(DIALECT_EXAMPLES / dialect / folder), "--", *command)

    assert done.exit_code == ExitCode.DONE, done.output
    assert done.stderr == f"no errors: a valid {dialect} extension\n"


def test_a_program_on_becket_passes_in_every_dialect() -> None:
    program = DIALECT_EXAMPLES / "synaps" / "served.py"

    done = here("check", "--dialect", "auto", "--json", "--", sys.executable, str(program))

    received = json.loads(done.stdout)
    assert received["dialect"] == "native"
    assert next(iter(received["reports"])) == "native"
    assert {*received["reports"]} == {*DIALECTS}
    protocol = {
        name for name, report in received["reports"].items() if any(is_response(one) for one in report["findings"])
    }
    assert {"native", "synaps", "nexo", "roder", "morphir", "cigen", "mcp"} <= protocol


def is_response(finding: dict[str, str]) -> bool:
    return finding["check"] == "response" and finding["level"] == "ok"


# -- detection

MORPHIR = """
import json, sys, time

def answer(message, **more):
    print(json.dumps({"id": message["id"], **more}), flush=True)

def serve(message):
    match message["method"]:
        case "initialize":
            answer(message, result={"status": "ready"})
        case "capabilities":
            answer(message, result=[{"name": "count", "description": "Counts."}])
        case _:
            answer(message, error="there is no such method")

CHANGE

for line in sys.stdin:  # and exits on anything but JSON
    serve(json.loads(line))
at_end()
"""


def write(tmp_path: Path, change: str = "") -> Path:
    path = tmp_path / "program.py"
    end = "def at_end(): pass\n"
    path.write_text(MORPHIR.replace("CHANGE", end + change), encoding="utf-8")
    return path


def test_the_dialect_is_detected_and_not_confused_with_similar_ones(tmp_path: Path) -> None:
    done = here(
        "check", "--no-conformance", "--dialect", "auto", "--timeout", "2", "--", sys.executable, str(write(tmp_path))
    )

    assert done.exit_code == ExitCode.DONE, done.output
    first = done.stdout.splitlines()[0]
    assert "; morphir: yes;" in first
    assert "native: no;" in first
    assert done.stderr == "no errors: a valid morphir extension\n"


# -- problems


def wrong(tmp_path: Path, change: str, dialect: str = "morphir", timeout: str = "2") -> list[tuple[str, str, str]]:
    """Returns the findings that are not ok: the check, the level and the message."""
    path = write(tmp_path, change)
    words = ["check", "--no-conformance", "--json", "--dialect", dialect, "--timeout", timeout]
    done = here(*words, "--", sys.executable, str(path))
    findings = json.loads(done.stdout)["reports"][dialect]["findings"]
    bad = [(one["check"], one["level"], one["text"]) for one in findings if one["level"] in ("warning", "error")]
    assert done.exit_code == (ExitCode.FAILED if any(level == "error" for _, level, _ in bad) else ExitCode.DONE)
    return bad


def test_a_good_program_has_no_problems(tmp_path: Path) -> None:
    assert wrong(tmp_path, "") == []


def test_a_program_that_ends_at_once_is_reported_with_its_stderr(tmp_path: Path) -> None:
    assert wrong(tmp_path, "sys.exit('no luck')") == [
        (
            "response",
            "error",
            "it exited with code 1 before it responded to `initialize`, last line of stderr: no luck",
        )
    ]


def test_a_silent_program_is_reported_with_its_output(tmp_path: Path) -> None:
    change = "def serve(message): print('hm', flush=True)"

    assert wrong(tmp_path, change, timeout="0.5") == [
        ("response", "error", "it did not respond to `initialize` within 0.5 s; it wrote: 'hm\\n'"),
        ("stdout", "warning", "something wrote to stdout: 'hm'"),
    ]


def test_a_program_that_refuses_is_reported(tmp_path: Path) -> None:
    [(check, level, text)] = wrong(tmp_path, "def serve(message): answer(message, error='not you')")

    assert (check, level) == ("response", "error")
    assert "not you" in text


def test_a_response_that_breaks_the_rules_is_reported(tmp_path: Path) -> None:
    change = "def serve(message): answer(message, result={})"

    [(check, level, text)] = wrong(tmp_path, change)

    assert (check, level) == ("handshake", "error")
    assert text


def test_text_on_stdout_is_a_warning_where_its_own_hosts_pass_over_it(tmp_path: Path) -> None:
    assert wrong(tmp_path, "print('Hello!', flush=True)") == [
        ("stdout", "warning", "something wrote to stdout: 'Hello!'")
    ]


def test_a_program_that_outlives_its_stdin_is_a_warning(tmp_path: Path) -> None:
    assert wrong(tmp_path, "def at_end(): time.sleep(60)") == [
        ("stdin", "warning", "it still runs 2 s after the end of its stdin")
    ]


def test_a_program_that_ends_badly_is_a_warning(tmp_path: Path) -> None:
    assert wrong(tmp_path, "def at_end(): sys.exit(3)") == [
        ("stdin", "warning", "it exited with code 3 when its stdin ended")
    ]


def test_a_program_that_cannot_be_started_is_reported() -> None:
    done = here("check", "--dialect", "nexo", "--", "no-such-program")

    assert done.exit_code == ExitCode.FAILED
    assert "`no-such-program` cannot be started" in done.stdout


MCP = """
import json, pathlib, sys

calls = pathlib.Path(__file__).with_name("calls")
tool = {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}

def respond(message):
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "x", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": [tool, {"name": "wipe", "inputSchema": {}}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": message["params"]["name"]}]}

for line in sys.stdin:
    message = json.loads(line)
    with calls.open("a", encoding="utf-8") as file:
        print(message["method"], message.get("params", {}).get("name", ""), file=file)
    if "id" in message:
        CHANGE
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": respond(message)}), flush=True)
"""


def check_mcp(tmp_path: Path, change: str, *words: str) -> tuple[dict[str, str], list[str]]:
    """Returns the level of each case, and all calls that the server got."""
    program = tmp_path / "server.py"
    program.write_text(MCP.replace("CHANGE", change), encoding="utf-8")
    done = here("check", "--no-conformance", "--json", "--dialect", "mcp", *words, "--", sys.executable, str(program))
    findings = json.loads(done.stdout)["reports"]["mcp"]["findings"]
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    return {one["check"]: one["level"] for one in findings}, [call.strip() for call in calls]


def test_tools_with_the_hint_read_only_are_called_and_a_call_is_cancelled(tmp_path: Path) -> None:
    # A call that is responded to at once is over before it can be cancelled.
    levels, calls = check_mcp(
        tmp_path, "if calls.read_text(encoding='utf-8').split().count('tools/call') == 2: continue"
    )

    assert (levels["ping"], levels["tools"], levels["cancel"]) == ("ok", "ok", "ok")
    assert "notifications/cancelled" in calls
    assert "tools/call look" in calls
    assert "tools/call wipe" not in calls


def test_all_tools_of_another_system_are_called_on_request(tmp_path: Path) -> None:
    _, calls = check_mcp(tmp_path, "pass", "--call-tools")

    assert "tools/call wipe" in calls


@pytest.mark.parametrize(
    ("change", "case"),
    [
        ("if 'call' in message['method']: continue", "tools"),
        ("if 'call' in message['method']: sys.exit(3)", "tools"),
        ("if calls.read_text(encoding='utf-8').count('tools/call') > 1: continue", "cancel"),
        ("if calls.read_text(encoding='utf-8').count('tools/call') > 1: sys.exit(3)", "cancel"),
    ],
)
def test_tools_of_another_system_that_do_not_respond_are_found(tmp_path: Path, change: str, case: str) -> None:
    levels, _ = check_mcp(tmp_path, change, "--timeout", "2")

    assert levels[case] == "error"


def test_a_command_of_another_system_is_run_on_request() -> None:
    folder = str(DIALECT_EXAMPLES / "synaps" / "journal")
    words = ["--dialect", "synaps", "--folder", folder, "--command", "journal help", "--", "python3", "journal.py"]

    done = here("check", "--no-conformance", "--json", *words)

    findings = json.loads(done.stdout)["reports"]["synaps"]["findings"]
    assert [one["level"] for one in findings if one["check"] == "commands"] == ["ok"]


LSP = """
import json, sys

while True:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.partition(b":")[2])
    if not length:
        sys.exit({code})
    message = json.loads(sys.stdin.buffer.read(length))
    if message["method"] == "exit":
        sys.exit(0)
    if "id" in message:
        result = {{"capabilities": {{}}}} if message["method"] == "initialize" else None
        body = json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
        sys.stdout.buffer.flush()
"""


@pytest.mark.parametrize(("code", "level"), [(0, "ok"), (1, "ok"), (3, "warning")])
def test_a_language_server_may_exit_with_1_when_its_stdin_ends_without_shutdown(
    tmp_path: Path, code: int, level: str
) -> None:
    program = tmp_path / "server.py"
    program.write_text(LSP.format(code=code), encoding="utf-8")

    done = here("check", "--no-conformance", "--json", "--dialect", "lsp", "--", sys.executable, str(program))

    findings = json.loads(done.stdout)["reports"]["lsp"]["findings"]
    assert [one["level"] for one in findings if one["check"] == "stdin"] == [level]


NEXO = """
def serve(message):
    if message["method"] == "initialize":
        print(json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"hooks": ["on_sunrise"]}}), flush=True)
def at_end():
    time.sleep(60)
"""


def test_oddities_that_a_host_passes_over_and_an_ignored_shutdown_are_warnings(tmp_path: Path) -> None:
    found = wrong(tmp_path, NEXO, "nexo", timeout="1")

    assert [(check, level) for check, level, _ in found] == [
        ("handshake", "warning"),
        ("stdin", "warning"),
        ("shutdown", "warning"),
    ]
    assert "on_sunrise" in found[0][2]


def test_a_program_gets_the_variables_and_the_configuration_of_its_manifest(tmp_path: Path) -> None:
    change = """
import os
at_start = serve
def serve(message):
    given = message["params"], os.environ.get("MOOD")
    if message["method"] == "initialize" and given != ({"style": "dense"}, "calm"):
        answer(message, error=f"started with {given}")
    else:
        at_start(message)
"""
    program = write(tmp_path, change)
    listed = '[[extensions]]\nname="a"\nconfig.style="dense"\nsource={type="process",command="x",env={MOOD="calm"}}\n'
    (tmp_path / "morphir.toml").write_text(listed, encoding="utf-8")

    done = here(
        "check",
        "--no-conformance",
        "--dialect",
        "morphir",
        "--folder",
        str(tmp_path),
        "--",
        sys.executable,
        str(program),
    )

    assert done.exit_code == ExitCode.DONE, done.output


SYNAPS = """
import json, sys

while True:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.partition(b":")[2])
    if not length:
        break
    asked = json.loads(sys.stdin.buffer.read(length))
    provider = {"id": "local", "display_name": "Local", "description": "d", "models": [{"id": "small"}],
                "config_schema": {"type": "object", "required": ["endpoint"]}}
    result = {"protocol_version": 1, "capabilities": {"providers": [provider]}}
    body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\n\\n%b" % (len(body), body))
    sys.stdout.buffer.flush()
    if asked["method"] == "shutdown":
        break
"""


def test_the_model_of_a_provider_is_taken_from_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SYNAPS, encoding="utf-8")
    (tmp_path / ".synaps-plugin").mkdir()
    entry = {"key": "endpoint", "required": True, "default": "http://127.0.0.1:1"}
    extension = {"runtime": "process", "command": "x", "permissions": ["providers.register"], "config": [entry]}
    (tmp_path / ".synaps-plugin" / "plugin.json").write_text(json.dumps({"extension": extension}), encoding="utf-8")
    command = ["--", sys.executable, "program.py"]

    done = here("check", "--no-conformance", "--dialect", "synaps", "--folder", str(tmp_path), *command)

    assert done.exit_code == ExitCode.DONE, done.output


def test_of_dialects_that_others_have_added_those_of_extensions_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    morphir = DIALECTS["morphir"]
    known = {name: DIALECTS[name] for name in DIALECTS}
    mine = {"mine": replace(morphir, name="mine"), "link": replace(morphir, name="link", load_mapping=None)}
    monkeypatch.setattr(checks, "DIALECTS", known | mine)

    tried = checks.list_dialects()

    assert "mine" in tried
    assert "link" not in tried


def test_a_program_without_messages_is_not_an_extension() -> None:
    silent = ["--", sys.executable, "-c", "import sys; sys.stdin.read()"]

    done = here("check", "--no-conformance", "--dialect", "auto", "--timeout", "0.3", *silent)

    assert done.exit_code == ExitCode.FAILED
    assert done.stderr == "not an extension: responds to none of these dialects\n"


def test_a_folder_with_several_manifests_gives_no_settings(tmp_path: Path) -> None:
    program = write(tmp_path)
    lists = "".join(
        f'[[extensions]]\nname = "{name}"\n[extensions.source]\ntype="process"\ncommand="x"\n' for name in "ab"
    )
    (tmp_path / "morphir.toml").write_text(lists, encoding="utf-8")

    done = here(
        "check",
        "--no-conformance",
        "--dialect",
        "morphir",
        "--folder",
        str(tmp_path),
        "--",
        sys.executable,
        str(program),
    )

    assert done.exit_code == ExitCode.DONE, done.output
