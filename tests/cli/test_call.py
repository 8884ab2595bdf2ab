"""`becket call`: JSON in, JSON out, and one line for an error."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.commands import BECKET, EXTENSIONS, HOSTED, ODD, becket, here, printed_json, write_extension
from tests.cli.terminals import Terminal

from becket.cli.support.exit_codes import ExitCode
from becket.stores.sqlite import SqliteStore
from becket.testing.transcripts.file_format import load_transcript
from becket.testing.transcripts.steps import read_steps

pytestmark = pytest.mark.process

CALCULATOR = """
import os
import sys
from becket import Registry, RpcError
from becket.blocking import connect_stdio

methods = Registry()

@methods.handle("add")
def add(params: list[int]) -> int:
    print("adding", file=sys.stderr)
    return sum(params)

@methods.handle("fail")
def fail() -> None:
    raise RpcError(17, "no such luck")

@methods.handle("die")
def die() -> None:
    os._exit(3)

with connect_stdio(methods=methods) as peer:
    peer.serve()
"""


@pytest.fixture
def calculator(tmp_path: Path) -> list[str]:
    path = tmp_path / "calculator.py"
    path.write_text(CALCULATOR, encoding="utf-8")
    return ["--", sys.executable, str(path)]


# -- extensions


def test_a_tool_is_called_with_json_and_its_result_is_json() -> None:
    assert printed_json("call", *HOSTED, "notes", "keep", '{"text": "milk"}') == "kept: milk"


def test_the_input_may_come_from_stdin_and_the_extension_may_be_no_python() -> None:
    done = becket("call", *HOSTED, "dice", "roll", "-", input='{"dice": 3}')

    assert done.returncode == 0
    assert len(json.loads(done.stdout)["thrown"]) == 3
    assert done.stderr == "info: dice: dice: the dice are on the table\n"


def test_a_disabled_tool_is_reported_once_with_the_reason(tmp_path: Path) -> None:
    root = str(write_extension(tmp_path, "odd", ODD, permissions=["tools.register"]))

    done = becket("call", "odd", "stretch", "--root", root, "--no-data", "--yes")

    warned, error = done.stderr.splitlines()
    assert done.returncode == ExitCode.NOT_FOUND
    assert warned.startswith("warning: odd: the tool `stretch` is disabled, ")
    assert "bend" in error


def test_stderr_of_the_extension_is_shown_on_stderr(tmp_path: Path) -> None:
    program = """
from becket.extension import ExtensionServer, tool

class Talker(ExtensionServer):
    id, version = "talker", "1.0.0"

    @tool
    def greet(self) -> str:
        "Greets."
        print("who is there?")
        return "hello"

Talker().run()
"""
    root = str(write_extension(tmp_path, "talker", program, permissions=["tools.register"]))

    done = becket("call", "talker", "greet", "--root", root, "--no-data", "--yes")

    assert (done.returncode, done.stdout) == (0, '"hello"\n')
    assert done.stderr == "info: talker: who is there?\n"


@pytest.mark.parametrize(("name", "expected"), [("info.get", dict), ("count", int)])
def test_null_means_no_params_and_no_input(name: str, expected: type) -> None:
    assert isinstance(printed_json("call", *HOSTED, "notes", name, "null"), expected)


def test_a_name_that_is_not_a_tool_is_a_method() -> None:
    assert printed_json("call", *HOSTED, "notes", "info.get")["build"]["version"] == "1.0.0"


def test_data_that_a_tool_has_stored_is_there_at_the_next_call(tmp_path: Path) -> None:
    kept = ("--data", str(tmp_path / "data"), *[word for word in HOSTED if word != "--no-data"])

    assert printed_json("call", *kept, "notes", "keep", '{"text": "milk"}') == "kept: milk"
    assert printed_json("call", *kept, "notes", "find", '{"text": "MILK"}') == "- milk"


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        pytest.param(["notes", "keep", '{"txt": "a"}'], 2, "/text: is missing", id="wrong-input"),
        pytest.param(["notes", "keep", "[]"], 2, "the input of a tool must be an object", id="array"),
        pytest.param(["notes", "burn"], 3, "notes has no tool or method 'burn', it has: count, find, keep", id="tool"),
        pytest.param(["nobody", "keep"], 3, "no extension 'nobody', it has: census, dice", id="extension"),
    ],
)
def test_a_tool_that_cannot_be_called_is_reported_in_a_line(words: list[str], code: int, output: str) -> None:
    done = becket("call", *HOSTED, *words)

    assert done.returncode == code
    assert done.stdout == ""
    assert output in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_an_extension_without_consent_is_not_started() -> None:
    done = becket("call", *HOSTED[:-1], "notes", "count")

    assert done.returncode == 4
    assert "becket call --yes" in done.stderr


def test_text_typed_before_a_prompt_is_not_a_decision() -> None:
    with Terminal(
        [*BECKET, "call", "--root", str(EXTENSIONS), "--no-data", "--no-hooks", "notes", "count"]
    ) as terminal:
        terminal.type("y\ny\n")
        terminal.expect("agree? [y/N]")
        terminal.enter("n")
        assert terminal.end() == ExitCode.DENIED


def test_the_extensions_that_it_needs_are_started_with_it_and_no_others(tmp_path: Path) -> None:
    program = """
from pathlib import Path
from becket.extension import ExtensionServer, tool

class Extension(ExtensionServer):
    id = Path(__file__).stem
    version = "1.0.0"

    async def on_start(self):
        Path(self.root, "was_here").touch()

    @tool
    def greet(self) -> str:
        "Greets."
        return f"{self.id} greets"

Extension().run()
"""
    asks = {"permissions": ["tools.register"]}
    for id, after in {"base": [], "middle": ["base"], "top": ["middle"], "stranger": []}.items():
        write_extension(tmp_path, id, program, after=after, **asks)

    assert printed_json("call", "--root", str(tmp_path), "--no-data", "--yes", "top", "greet") == "top greets"
    assert sorted(path.parent.name for path in tmp_path.glob("*/was_here")) == ["base", "middle", "top"]


def test_hooks_of_other_extensions_are_consulted_unless_they_are_left_out(tmp_path: Path) -> None:
    shell = """
from becket.extension import ExtensionServer, tool

class Shell(ExtensionServer):
    id, version = "shell", "1.0.0"

    @tool
    def run_it(self, command: str) -> str:
        "Runs it."
        return f"ran {command}"

Shell().run()
"""
    guard = """
from becket.contract.hooks import Block, Modify
from becket.extension import ExtensionServer, hook

class Guard(ExtensionServer):
    id, version = "guard", "1.0.0"

    @hook("before_tool_call")
    def look(self, event):
        command = event.tool_input["command"]
        return Block("not today") if command == "rm" else Modify({"command": "ls -l"})

Guard().run()
"""
    write_extension(tmp_path, "shell", shell, permissions=["tools.register"])
    write_extension(tmp_path, "guard", guard, permissions=["tools.intercept"])
    hosted = ("call", "--root", str(tmp_path), "--no-data", "--yes")

    blocked = becket(*hosted, "shell", "run_it", '{"command": "rm"}')

    assert blocked.returncode == 4
    assert "blocked by guard: not today" in blocked.stderr
    assert printed_json(*hosted, "shell", "run_it", '{"command": "ls"}') == "ran ls -l"
    assert printed_json(*hosted, "--no-hooks", "shell", "run_it", '{"command": "rm"}') == "ran rm"


def test_while_a_host_uses_the_files_the_command_fails_with_a_hint(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.sqlite"):
        done = becket("call", "--data", str(tmp_path), *HOSTED[:2], "--yes", "notes", "count")

    assert done.returncode == 6
    assert "--no-data" in done.stderr


def test_messages_can_be_recorded(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    printed_json("call", *HOSTED, "--trace", str(path), "notes", "keep", '{"text": "milk"}')
    printed_json("call", *HOSTED, "--trace", str(path), "notes", "count")

    methods = [step.method for step in read_steps(load_transcript(path).entries) if step.kind == "call"]
    assert methods == ["initialize", "tool.call", "memory.query", "shutdown"]  # of the second call alone


def test_messages_of_a_program_outside_its_folder_are_recorded_too(tmp_path: Path) -> None:
    path = tmp_path / "make.jsonl"
    plugins = Path(__file__).parents[2] / "examples" / "dialects" / "cigen"
    hosted = ["--root", str(plugins), "--no-data", "--yes", "--trace", str(path)]
    done = becket("call", *hosted, "cigen-provider-make", "plan", "{}")

    assert (done.returncode, done.stderr) == (0, "info: cigen-provider-make: provider/make: plan\n")
    assert load_transcript(path).framing == "length-prefixed"


def test_a_config_file_may_name_an_extension_without_a_manifest(tmp_path: Path) -> None:
    config = tmp_path / "host.toml"
    config.write_text(
        f"""data = false
[extensions.mine]
command = ["{sys.executable}", "notes.py"]
folder = "{EXTENSIONS / "notes"}"
allow = ["memory.read", "tools.register"]
""",
        encoding="utf-8",
    )

    assert printed_json("call", "--config", str(config), "--yes", "mine", "count") == 0


# -- programs


def test_a_method_of_any_program_is_called_without_a_host(calculator: list[str]) -> None:
    done = becket("call", "add", "[1, 2]", *calculator)

    assert (done.returncode, json.loads(done.stdout)) == (0, 3)
    assert done.stderr == "adding\n"


def test_messages_to_a_program_can_be_recorded_too(calculator: list[str], tmp_path: Path) -> None:
    path = tmp_path / "sums.jsonl"
    becket("call", "--trace", str(path), "add", "[1, 2]", *calculator)

    assert [step.method for step in read_steps(load_transcript(path).entries)][:2] == ["add", "add"]


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        pytest.param(["fail"], 1, "fail: no such luck (17)", id="error"),
        pytest.param(["missing"], 1, "unknown method", id="unknown-method"),
        pytest.param(["die"], 5, "exit code 3", id="crash"),
        pytest.param(["--dialect", "klingon", "add"], 2, "`klingon` is not one of", id="dialect"),
    ],
)
def test_a_failed_call_of_a_program_has_its_exit_code_and_message(
    calculator: list[str], words: list[str], code: int, output: str
) -> None:
    done = becket("call", *words, *calculator)

    assert done.returncode == code
    assert output in done.stderr


def test_a_program_that_does_not_respond_times_out() -> None:
    silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    done = becket("call", "--timeout", "0.2", "add", "--", *silent)

    assert done.returncode == 5
    assert "no response within 0.2 s" in done.stderr


def test_a_program_that_does_not_exist_is_named() -> None:
    done = here("call", "add", "--", "no-such-program")

    assert done.exit_code == 5
    assert "no-such-program" in done.stderr


# -- the command line


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="nothing"),
        pytest.param(["notes"], id="no-name"),
        pytest.param(["notes", "keep", "{}", "more"], id="too-much"),
        pytest.param(["notes", "keep", "{"], id="no-json"),
        pytest.param(["notes", "keep", '"text"'], id="no-object"),
        pytest.param(["notes", "keep", "--timeout", "0"], id="no-time"),
        pytest.param(["add", "--"], id="no-program"),
        pytest.param(["add", "[1]", "more", "--", "cat"], id="too-much-for-a-program"),
        pytest.param(["--", "cat"], id="no-method"),
    ],
)
def test_an_invalid_command_line_is_refused(words: list[str]) -> None:
    done = here("call", *words)

    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") <= 2


def test_help_shows_both_forms() -> None:
    done = here("call", "--help")

    assert 'becket call notes keep \'{"text": "buy milk"}\'\n' in done.stdout
    assert "-- python3 calculator.py" in done.stdout
