"""`becket new`: a working extension to begin with: its manifest, its code, the program that starts it, and its test."""

from __future__ import annotations

import importlib.util
import json
import keyword
import re
import shlex
import sys
from pathlib import Path
from string import Template
from typing import Final

import click

from becket.cli.hosting import FOLDER
from becket.cli.output import json_option, print_json, print_line, say
from becket.errors import BadFile
from becket.host.manifest import FILE_NAME, parse_manifest
from becket.typed.toml_files import parse_toml

__all__ = ["new"]

LAUNCHER: Final = "run"
TAKEN_NAMES: Final = frozenset(
    {"CommandOutput", "ExtensionServer", "Greeting", "Table"}
)  # of classes in the files below

MANIFEST: Final = Template("""\
id = $quoted_id
version = "0.1.0"
description = "Says how often it has been called."
command = ["./run"]
permissions = ["memory.read", "memory.write", "tools.register"]

[config.greeting]
type = "string"
default = "Hello"
description = "What it says first."

[[commands]]
name = "$command"
description = "Shows all that were greeted."
read_only = true
""")

CODE: Final = Template('''\
"""$id: an extension of becket."""

from __future__ import annotations

from becket.extension import CommandOutput, ExtensionServer, command, tool


class $name(ExtensionServer):
    id = $quoted_id
    version = "0.1.0"

    @tool
    async def greet(self, name: str) -> str:
        """Greets somebody, and remembers it.

        Args:
            name: Who is greeted.
        """
        await self.host.memory.append(name)
        times = len(await self.host.memory.query(name))
        return f"{self.config.get('greeting', 'Hello')}, {name}! ({times})"

    @command("$command")
    async def show_greeted(self, args: list[str], out: CommandOutput) -> None:
        notes = await self.host.memory.query()
        await out.table(["who"], [[note.content] for note in notes])


if __name__ == "__main__":
    $name().run()
''')

TEST: Final = Template('''\
"""The extension with a host, in one program: run it with `python -m unittest`, or with pytest."""

from __future__ import annotations

import asyncio
import unittest

from $module import $name

from becket.contract.commands import Table
from becket.testing import connected

GRANTS = ["memory.read", "memory.write", "tools.register"]
CONFIG = {"greeting": "Good morning"}


async def greet(*names: str) -> tuple[list[str], list[object]]:
    """Greets these, and returns what was said and what the command shows then."""
    async with connected($name(), grants=GRANTS, config=CONFIG) as (host, _):
        said = [await host.call_tool("greet", {"name": name}) for name in names]
        async with host.invoke_command("$command") as run:
            return said, [event async for event in run]


class Greeting(unittest.TestCase):
    def test_it_remembers_whom_it_has_greeted(self) -> None:
        said, _ = asyncio.run(greet("Ada", "Ada"))

        self.assertEqual(said, ["Good morning, Ada! (1)", "Good morning, Ada! (2)"])

    def test_its_command_shows_them(self) -> None:
        _, shown = asyncio.run(greet("Ada", "Grace"))

        self.assertIn(Table(("who",), (("Grace",), ("Ada",))), shown)


if __name__ == "__main__":
    unittest.main()
''')

PROGRAM: Final = Template("""\
#!/bin/sh
# Starts the extension in its folder. -I: neither the environment nor the folder can put another module in the place of
# one that is installed. -B: what was agreed to are these files, and no others shall appear beside them.
cd "$$(dirname "$$0")" && exec python3 -I -B $module.py "$$@"
""")


@click.command()
@click.argument("folder", type=FOLDER)
@click.option("--id", "id", metavar="ID", help="Its id; the name of the folder unless given.")
@json_option
def new(folder: Path, id: str | None, as_json: bool) -> None:
    """Write a working extension with its manifest, its test and the program that starts it into FOLDER.

    The folder must not be there yet, or be empty.

    \b
    becket new greeter
    cd greeter && python -m unittest && becket check -- ./run
    """
    id = folder.absolute().name.lower() if id is None else id
    files = build_files(id)
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder} is not empty: nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        if name == LAUNCHER:
            path.chmod(0o755)
    if as_json:
        print_json({"id": id, "folder": str(folder.absolute()), "files": [*files]})
        return
    for name in files:
        print_line(str(folder / name))
    say(
        f"cd {shlex.quote(str(folder))}\n"
        "python -m unittest                # its test\n"
        "becket check -- ./run             # is it an extension?\n"
        "becket run --yes --development    # a host of it"
    )


def build_files(id: str) -> dict[str, str]:
    """Returns the files of an extension with this id.

    Raises:
        click.UsageError: none can have it.
    """
    parts = re.findall("[a-z0-9]+", id)
    module = "_".join(parts)
    if not module.isidentifier() or keyword.iskeyword(module) or is_importable(module):
        module = f"extension_{module}"
    name = "".join(part.capitalize() for part in parts)
    if not name.isidentifier() or keyword.iskeyword(name) or name in TAKEN_NAMES:
        name = f"Extension{name}"
    names = {
        "id": id,
        "quoted_id": json.dumps(id, ensure_ascii=False),  # so that the manifest's own rules refuse it
        "module": module,
        "name": name,
        "command": parts[0] if parts else "show",
    }
    manifest = MANIFEST.substitute(names)
    try:
        parse_manifest(parse_toml(manifest.encode(), FILE_NAME), FILE_NAME)
    except BadFile as error:
        raise click.UsageError(f"`{id}` {error.problems[0][1]} (--id gives another)") from error
    return {
        FILE_NAME: manifest,
        f"{module}.py": CODE.substitute(names),
        LAUNCHER: PROGRAM.substitute(names),
        f"test_{module}.py": TEST.substitute(names),
    }


def is_importable(module: str) -> bool:
    """Returns whether a file of this name would hide a module that is installed."""
    return module in sys.stdlib_module_names or importlib.util.find_spec(module) is not None
