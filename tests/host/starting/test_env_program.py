"""The variables that the program `env` sets are parsed from its arguments as `env` does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from becket.host.starting.env_program import find_env_variables, split_env_command

PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["PYTHONPATH=lib", "MODE="], {"PYTHONPATH": "lib", "MODE": ""}),
        (["MODE=a=b", "MODE=c"], {"MODE": "c"}),
        (["my.name=1", "BASH_FUNC_x%%=() { :; }"], {"my.name": "1", "BASH_FUNC_x%%": "() { :; }"}),
        (["-i", "MODE=1"], {"MODE": "1"}),
        (["-u", "HOME", "MODE=1"], {"MODE": "1"}),
        (["--unset=HOME", "-uLANG", "MODE=1"], {"MODE": "1"}),
        (["-C", "/", "MODE=1"], {"MODE": "1"}),
        (["--chdir=/", "MODE=1"], {"MODE": "1"}),
        (["-S", "MODE='a b' OTHER=1"], {"MODE": "a b", "OTHER": "1"}),
        (["-iS", "MODE=1"], {"MODE": "1"}),
        (["-SMODE=1"], {"MODE": "1"}),
        (["--split-string=MODE=1"], {"MODE": "1"}),
        (["-S", "-u HOME MODE=1", "OTHER=2"], {"MODE": "1", "OTHER": "2"}),
    ],
)
@pytest.mark.process
def test_the_variables_are_the_ones_that_the_program_sets(words: list[str], variables: dict[str, str]) -> None:
    program = shutil.which("env")
    assert program is not None
    command = [program, *words, sys.executable, "-I", "-c", PRINT_ENVIRONMENT]

    found = split_env_command(command)
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, env={"HOME": "/x", "LANG": "C", "PATH": "/bin"})

    assert found is not None
    assert found.variables == variables
    assert found.command == (sys.executable, "-I", "-c", PRINT_ENVIRONMENT)
    assert variables.items() <= json.loads(ran.stdout).items()


def test_a_command_of_another_program_is_not_parsed_as_env() -> None:
    assert split_env_command(["python3", "env.py", "A=1"]) is None
    assert split_env_command([]) is None
    assert find_env_variables(["python3", "main.py", "A=1"]) == {}


def test_env_is_found_behind_other_programs_and_behind_itself() -> None:
    command = ["nice", "-n", "5", "/usr/bin/env", "A=1", "env", "B=2", "A=3", "notes", "C=4"]

    assert find_env_variables(command) == {"A": "3", "B": "2"}


@pytest.mark.parametrize("words", [["-S"], ["-u"], ["-S", "'"], ["-S", "-S -S -S -S -S -S -S -S -S A=1"], ["--"]])
def test_a_command_that_is_cut_off_is_read_to_its_end(words: list[str]) -> None:
    assert split_env_command(["env", *words]) is not None
