"""The options of a host, alone and with a configuration file; how a signal ends a loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import click
import pytest
from click.testing import CliRunner, Result

from becket.cli.main import cli
from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.options import (
    INHERITING,
    DataDirOptions,
    HostOptions,
    TerminationRequested,
    data_dir_options,
    host_options,
    run_async,
)
from becket.cli.support.terminal_prompt import approve_all
from becket.dialects import DIALECTS
from becket.errors import BecketError
from becket.permissions.grants import Grants
from becket.permissions.policies import Decision

CONFIG = """
name = "demo"
roots = ["extensions"]
disabled = ["old"]
data = "state"
[log]
level = "debug"
[extensions.notes]
allow = ["memory.read"]
deny = ["memory.write"]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "host.toml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the folders `a` and `b` in the current one."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path)


def arguments(*words: str, roots: Any = "argument") -> dict[str, Any]:
    """Returns the arguments of the host that would be started."""
    found: list[HostOptions] = []

    @click.command()
    @host_options(roots=roots)
    @click.option("--more", default=1)
    def command(options: HostOptions, more: int) -> None:
        assert more == 1
        found.append(options)

    command.main([*words], standalone_mode=False)
    return found[0].arguments()


# -- options


def test_by_default_the_current_folder_is_searched_and_there_is_no_prompt() -> None:
    assert arguments() == {
        "roots": (Path(),),
        "disabled": set(),
        "grants": {},
        "development": False,
        "inherit_environment": set(),
        "ask": None,
    }


@pytest.mark.usefixtures("folders")
def test_every_option_becomes_an_argument_of_the_host() -> None:
    words = "a b --name demo --data d --only x --only y --disable z --development --yes"
    words += " --inherit-environment nexo --inherit-environment morphir"
    given = arguments(*words.split(), "--grant", "x=memory.read", "--grant", "x=memory.write")

    assert given == {
        "roots": (Path("a"), Path("b")),
        "name": "demo",
        "data": Path("d"),
        "only": ("x", "y"),
        "disabled": {"z"},
        "development": True,
        "inherit_environment": {"morphir", "nexo"},
        "ask": approve_all,
        "grants": {"x": Grants(frozenset({"memory.read", "memory.write"}))},
    }


def test_dialects_that_inherit_are_those_whose_own_hosts_pass_variables_on() -> None:
    assert (
        tuple(sorted(name for name in DIALECTS if DIALECTS[name].host_defaults.inherited_environment != "few"))
        == INHERITING
    )
    assert invoke("run", "--inherit-environment", "native").exit_code == ExitCode.USAGE


@pytest.mark.usefixtures("folders")
def test_roots_can_be_an_option_where_a_command_has_other_arguments() -> None:
    assert arguments("-r", "a", "--root", "b", roots="option")["roots"] == (Path("a"), Path("b"))


def test_nothing_is_stored_without_data() -> None:
    assert arguments("--no-data")["data"] is None


def test_yes_gives_consent_to_everything() -> None:
    assert approve_all("what?", Decision("notes", "start", None, None, "")) is True


@pytest.mark.parametrize("value", ["notes", "=memory.read", "notes=memory.raed", "notes=tools.override"])
def test_an_invalid_grant_is_a_usage_error(value: str) -> None:
    done = invoke("run", "--grant", value)

    assert done.exit_code == ExitCode.USAGE
    assert "ID=PERMISSION" in done.stderr or "memory.read" in done.stderr


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, words, prog_name="becket")


# -- with a file


def test_the_settings_of_the_file_are_used(config: Path) -> None:
    given = arguments("--config", str(config))

    assert given["roots"] == (str(config.parent / "extensions"),)
    assert (given["name"], given["data"]) == ("demo", config.parent / "state")
    assert given["disabled"] == {"old"}
    assert given["grants"] == {"notes": Grants(frozenset({"memory.read"}), frozenset({"memory.write"}))}


@pytest.mark.usefixtures("folders")
def test_options_override_the_file(config: Path) -> None:
    words = f"a --config {config} --name other --no-data --disable x --grant notes=tools.register --grant y=memory.read"
    given = arguments(*words.split())

    assert given["roots"] == (Path("a"),)
    assert (given["name"], given["data"]) == ("other", None)
    assert given["disabled"] == {"old", "x"}
    assert given["grants"] == {
        "notes": Grants(frozenset({"memory.read", "tools.register"}), frozenset({"memory.write"})),
        "y": Grants(frozenset({"memory.read"})),
    }


def test_the_log_is_that_of_the_file(config: Path) -> None:
    assert HostOptions(config_file=config).log_config().level == "debug"
    assert HostOptions().log_config().level == "info"


def test_all_problems_of_an_unusable_file_are_reported_and_nothing_is_started(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_text("rots = []\nwatch = 1\n", encoding="utf-8")

    done = invoke("run", "--config", str(path))

    assert done.exit_code == ExitCode.FILES
    assert {line.partition(": ")[2].partition(": ")[2][:6] for line in done.stderr.splitlines()} == {"/rots:", "/watch"}


# -- data directories


def test_options_file_and_name_determine_the_data_directory(config: Path, tmp_path: Path) -> None:
    def folder(**options: Any) -> Path:
        return DataDirOptions(**options).data_dir().folder

    assert folder(data=tmp_path / "x", config_file=config) == tmp_path / "x"
    assert folder(config_file=config) == tmp_path / "state"
    assert folder(name="other").parts[-2:] == ("becket", "other")
    assert folder(name="other", config_file=config).parts[-2:] == ("becket", "other")
    assert folder().parts[-2:] == ("becket", "becket")


def test_a_host_without_persistence_has_no_files(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_text("data = false", encoding="utf-8")

    with pytest.raises(click.UsageError):
        DataDirOptions(config_file=path).data_dir()


def test_location_options_are_passed_as_one() -> None:
    found: list[DataDirOptions] = []

    @click.command()
    @data_dir_options
    def command(options: DataDirOptions) -> None:
        found.append(options)

    command.main(["--name", "demo"], standalone_mode=False)

    assert found == [DataDirOptions(name="demo")]


# -- the loop


async def add(a: int, b: int) -> int:
    await anyio.lowlevel.checkpoint()
    return a + b


async def fail() -> None:
    raise BecketError("as it is")


async def end_by(number: int) -> None:
    os.kill(os.getpid(), number)
    await anyio.sleep_forever()


def test_the_result_or_error_of_a_function_is_unchanged() -> None:
    assert run_async(add, 1, 2) == 3
    with pytest.raises(BecketError) as raised:
        run_async(fail)
    assert str(raised.value) == "as it is"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_what_runs(number: signal.Signals) -> None:
    with pytest.raises(TerminationRequested) as raised:
        run_async(end_by, number)

    assert raised.value.signal is number


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    async def hang_up_first() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        await end_by(signal.SIGTERM)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` starts a program
    try:
        with pytest.raises(TerminationRequested) as raised:
            run_async(hang_up_first)
    finally:
        signal.signal(signal.SIGHUP, before)

    assert raised.value.signal is signal.SIGTERM


def test_an_interrupt_ends_what_runs() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_async(end_by, signal.SIGINT)


@pytest.mark.process
def test_a_program_that_is_terminated_cleans_up_first() -> None:
    code = """
import anyio
from becket.cli.support.options import run_async
async def main():
    try:
        print("runs", flush=True)
        await anyio.sleep_forever()
    finally:
        print("cleaned up", flush=True)
run_async(main)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"runs\n"
        process.terminate()
        assert process.stdout.readline() == b"cleaned up\n"
