"""The command line as a whole: help, errors, exit codes, completion, and start cost."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from tests.cli.commands import BECKET, becket, here
from tests.test_import_cost import modules_after

from becket import __version__
from becket.cli.main import COMMANDS, CommandGroup, cli
from becket.cli.support.exit_codes import MEANINGS, ExitCode, exit_code_for
from becket.cli.support.options import TerminationRequested
from becket.errors import (
    BadFile,
    BadValue,
    BecketError,
    CallTimeout,
    ConnectionLost,
    DisconnectReason,
    ExtensionRefused,
    HandshakeFailed,
    Meaning,
    NotDeclared,
    PermissionDenied,
    ProviderDisabled,
    RemoteError,
    RpcError,
    StartFailed,
    StoreInUse,
    UnknownPermission,
)

EVERY = pytest.mark.parametrize("name", COMMANDS)


# -- help


def test_the_help_lists_every_command() -> None:
    shown = here("--help").stdout

    for name, (_, summary) in COMMANDS.items():
        assert f"\n  {name} " in shown
        assert summary in " ".join(shown.split())


@pytest.mark.parametrize("words", [[], ["trace"], ["memory"]])
def test_a_group_without_a_command_prints_its_help(words: list[str]) -> None:
    done = here(*words)

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == here(*words, "--help").stdout


@EVERY
def test_every_command_has_a_help_text_with_an_example(name: str) -> None:
    shown = here(name, "--help")

    assert shown.exit_code == 0
    assert f"becket {name}" in shown.stdout.partition("Usage:")[2].partition("\n")[2]


def commands_of(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from commands_of(inner, f"{path} {name}")


@EVERY
def test_every_option_is_explained(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    unexplained = [
        f"{path} {parameter.name}"
        for path, one in commands_of(command, name)
        for parameter in one.params
        if isinstance(parameter, click.Option) and not parameter.help
    ]

    assert unexplained == []


def test_the_version_is_printed() -> None:
    assert here("--version").stdout == f"becket {__version__}\n"


@pytest.mark.process
def test_becket_runs_as_a_program_and_as_a_module() -> None:
    program = Path(sys.executable).with_name("becket")

    for command in ([str(program)], [*BECKET]):
        done = subprocess.run([*command, "--version"], capture_output=True, encoding="utf-8", check=True, timeout=100)
        assert done.stdout == f"becket {__version__}\n"


# -- start cost


@pytest.mark.process
def test_the_help_does_not_load_the_modules_of_commands() -> None:
    statement = "import becket.cli.main as m; m.cli.main(['--help'], standalone_mode=False)"
    loaded = modules_after(
        f"import io, sys; out = sys.stdout; sys.stdout = io.StringIO(); {statement}; sys.stdout = out"
    )

    assert "becket.cli.main" in loaded
    unwanted = {"anyio", "asyncio", "attr", "cattrs", "jsonschema", "rich", "sqlite3", "watchfiles"}
    assert loaded & unwanted == set()
    assert not any(name.startswith(("becket.host.", "becket.extension", "becket.stores")) for name in loaded)


# -- errors


def test_the_error_for_an_unknown_command_suggests_one() -> None:
    done = here("rnu")

    assert done.exit_code == ExitCode.USAGE
    assert "`rnu`" in done.stderr
    assert "`run`" in done.stderr


@pytest.mark.parametrize("words", [["--nope"], ["run", "--nope"], ["schema", "a", "b"], ["grant"], ["new"], ["check"]])
def test_a_usage_error_is_reported_in_two_lines(words: list[str]) -> None:
    done = here(*words)

    assert done.exit_code == ExitCode.USAGE
    first, second = done.stderr.splitlines()
    assert first.startswith("error: ")
    assert second.startswith("try: becket ")
    assert done.stdout == ""


@pytest.fixture
def failing() -> CommandGroup:
    """A command line in which `fail` fails with the error in `FAILURES`."""

    @click.command()
    def fail() -> None:
        raise FAILURES[0]

    group = CommandGroup(params=[click.Option(["--debug"], is_flag=True, expose_value=False)])
    group.get_command = lambda ctx, cmd_name: fail  # type: ignore[method-assign]
    return group


FAILURES: list[BaseException] = []


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (BadFile("x.toml", [("/a", "is wrong"), ("", "too")]), ExitCode.FILES, ["x.toml: /a: is wrong", "x.toml: too"]),
        (FileNotFoundError(2, "No such file", "x"), ExitCode.FILES, ["x: No such file"]),
        (OSError("odd"), ExitCode.FILES, ["odd"]),
        (UnknownPermission("a.b\nc"), ExitCode.USAGE, ["Unknown extension permission: a.b", "c"]),
        (UnknownPermission("a\x1b[2J"), ExitCode.USAGE, ["Unknown extension permission: a\\x1b[2J"]),
        (
            ExceptionGroup("g", [ExtensionRefused("n", "no"), BecketError("b")]),
            ExitCode.DENIED,
            ["n: refused: no", "b"],
        ),
        (TerminationRequested.__new__(TerminationRequested), ExitCode.TERMINATED, []),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, []),
    ],
)
def test_the_error_of_a_command_is_reported_without_a_traceback(
    failing: CommandGroup, error: BaseException, code: ExitCode, lines: list[str]
) -> None:
    FAILURES[:] = [error]
    done = CliRunner().invoke(failing, ["run"])

    assert done.exit_code == code
    assert [line for line in done.stderr.splitlines() if line] == [f"error: {line}" for line in lines]


def test_a_mistake_of_becket_itself_is_one_line_and_with_debug_a_traceback(failing: CommandGroup) -> None:
    FAILURES[:] = [ZeroDivisionError("oh")]
    quiet, loud = (CliRunner().invoke(failing, words) for words in (["run"], ["--debug", "run"]))

    assert quiet.exit_code == ExitCode.BUG
    assert "ZeroDivisionError" in quiet.stderr
    assert len(quiet.stderr.splitlines()) == 1
    assert isinstance(loud.exception, ZeroDivisionError)


def test_called_as_a_function_the_command_raises_the_error_itself(failing: CommandGroup) -> None:
    FAILURES[:] = [BecketError("x")]

    with pytest.raises(BecketError):
        failing.main(["run"], standalone_mode=False)


@pytest.mark.process
def test_a_closed_stdout_is_not_an_error() -> None:
    with subprocess.Popen([*BECKET, "schema", "openrpc"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        output = process.stderr.read()

    assert b"Traceback" not in output


# -- exit codes


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(ExitCode)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotDeclared("becket", "extension", "x"), ExitCode.NOT_FOUND),
        (PermissionDenied("memory.read"), ExitCode.DENIED),
        (RemoteError(method="m", code=1, message="no", meaning=Meaning.PERMISSION_DENIED), ExitCode.DENIED),
        (RemoteError(method="m", code=1, message="no"), ExitCode.FAILED),
        (RpcError(7, "no"), ExitCode.FAILED),
        (ExtensionRefused("x", "no"), ExitCode.DENIED),
        (ProviderDisabled("x", "no"), ExitCode.DENIED),
        (StartFailed("x", "no"), ExitCode.NOT_RUNNING),
        (HandshakeFailed("x", "no"), ExitCode.NOT_RUNNING),
        (CallTimeout("m", 1.0), ExitCode.NOT_RUNNING),
        (ConnectionLost(DisconnectReason.PROCESS_EXIT), ExitCode.NOT_RUNNING),
        (StoreInUse("x", 1), ExitCode.FILES),
        (BadFile("x", []), ExitCode.FILES),
        (PermissionError(13, "no"), ExitCode.FILES),
        (BadValue("x", []), ExitCode.USAGE),
        (BecketError("x"), ExitCode.FAILED),
        (ValueError("x"), ExitCode.BUG),
    ],
    ids=repr,
)
def test_an_error_has_its_exit_code(error: BaseException, code: ExitCode) -> None:
    assert exit_code_for(error) is code


# -- completion


def complete(*words: str) -> list[str]:
    """Returns what the last of these words, which has only begun, can become."""
    completion = ShellComplete(cli, {}, "becket", "_BECKET_COMPLETE")
    return [item.value for item in completion.get_completions([*words[:-1]], words[-1])]


@pytest.mark.process
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_that_turns_completion_on(shell: str) -> None:
    if shell == "bash" and (bash_version() or (0, 0)) < (4, 4):
        pytest.skip("completion needs a newer bash")
    done = becket(_BECKET_COMPLETE=f"{shell}_source")

    assert done.returncode == 0
    assert "_BECKET_COMPLETE" in done.stdout


def bash_version() -> tuple[int, ...] | None:
    try:
        done = subprocess.run(["bash", "--version"], capture_output=True, encoding="utf-8", check=True, timeout=100)
    except FileNotFoundError:
        return None
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    return None if found is None else (int(found[1]), int(found[2]))


@pytest.mark.process
def test_shell_completion_lists_what_can_follow() -> None:
    done = becket(COMP_WORDS="becket gr", COMP_CWORD="1", _BECKET_COMPLETE="bash_complete")

    assert (done.returncode, done.stdout) == (0, "plain,grant\n")


def test_commands_options_and_values_are_completed() -> None:
    assert complete("gr") == ["grant"]
    assert complete("--ver") == ["--version"]
    assert sorted(complete("run", "--on")) == ["--once", "--only"]
    assert complete("schema", "host") == ["host-config"]
    assert complete("run", "--grant", "notes=memory.") == ["notes=memory.read", "notes=memory.write"]
    assert complete("run", "--grant", "no") == []
    assert complete("grant", "notes", "memory.w") == ["memory.write"]
    assert complete("check", "--dialect", "na") == ["native"]


@pytest.mark.process
def test_names_of_commands_are_completed_without_loading_them() -> None:
    statement = "from becket.cli.main import cli; import click; cli.shell_complete(click.Context(cli), 'r')"

    assert not any(name.startswith(("anyio", "becket.host.")) for name in modules_after(statement))
