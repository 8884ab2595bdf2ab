"""Runs `becket` in this process, where it is imported once, or as its users do, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from becket.cli.main import cli

EXTENSIONS = Path(__file__).parents[2] / "examples" / "extensions"
BECKET = (sys.executable, "-m", "becket")
HOSTED = ("--root", str(EXTENSIONS), "--no-data", "--yes")
"""Options for a host of the examples that keeps nothing and agrees to everything."""
PATIENCE = 60  # seconds: far more than any command takes
# One of its tools is disabled: its schema is invalid.
ODD = """
from becket.extension import ExtensionServer, tool

class Odd(ExtensionServer):
    id, version = "odd", "1.0.0"

    @tool("Bends.", input_schema={"type": "nonsense"})
    def stretch(self) -> str:
        return ""

    @tool("Bends.")
    def bend(self) -> str:
        return "bent"

Odd().run()
"""

Done = subprocess.CompletedProcess[str]


def becket(*words: str, input: str = "", folder: Path | None = None, **variables: str) -> Done:
    """Runs a command to its end in this process, without a terminal."""
    with chdir(folder or Path.cwd()):
        done = CliRunner(env=variables).invoke(cli, words, input=input, prog_name="becket")
    return Done(words, done.exit_code, done.stdout, done.stderr)


def becket_process(*words: str, **variables: str) -> Done:
    """Runs a command to its end in a process of its own, without a terminal."""
    return subprocess.run(
        [*BECKET, *words],
        input="",
        env={**os.environ, **variables},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


def printed(*words: str, input: str = "", folder: Path | None = None) -> str:
    """Returns what a command that succeeds writes to stdout; it writes nothing to stderr."""
    done = becket(*words, input=input, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def printed_json(*words: str, input: str = "") -> Any:
    """Returns the JSON document that a command writes."""
    return json.loads(printed(*words, input=input))


def json_lines(*words: str, stderr: str = "") -> list[Any]:
    """Returns the JSON documents that a command writes, one a line."""
    done = becket(*words)
    assert (done.returncode, done.stderr) == (0, stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def here(*words: str, input: str | None = None) -> Result:
    """Runs a command in this process, and returns what click says of it."""
    return CliRunner().invoke(cli, words, input=input, prog_name="becket")


def write_extension(folder: Path, id: str, program: str, **manifest: Any) -> Path:
    """Writes an extension into a folder of its own, and returns the folder that it is found in."""
    place = folder / id
    place.mkdir(parents=True)
    (place / f"{id}.py").write_text(program, encoding="utf-8")
    members = {"id": id, "version": "1.0.0", "command": ["python3", f"{id}.py"], **manifest}
    tables = {name: value for name, value in members.items() if isinstance(value, dict)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in members.items() if name not in tables]
    lines += [f"{name}.{key} = {json.dumps(value)}" for name, table in tables.items() for key, value in table.items()]
    (place / "becket.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
