"""`becket new`: writes a working extension with manifest, launcher and test."""

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

from becket.cli.support.options import FOLDER
from becket.cli.support.output import json_option, print_json, print_line, print_message
from becket.cli.support.templates import IGNORED, PROGRAM, README, TEMPLATES
from becket.conversion.files.reader import writing
from becket.conversion.files.toml import parse_toml
from becket.errors import BadFile
from becket.host.starting.manifest import FILE_NAME, parse_manifest

__all__ = ["new"]

LAUNCHER: Final = "run"


@click.command()
@click.argument("folder", type=FOLDER)
@click.option("--id", "id", metavar="ID", help="Id of the extension; default: the name of the folder.")
@click.option(
    "--template",
    type=click.Choice([*TEMPLATES]),
    default=next(iter(TEMPLATES)),
    show_default=True,
    help="What the extension offers at first.",
)
@json_option
def new(folder: Path, id: str | None, template: str, as_json: bool) -> None:
    """Create a working extension in FOLDER: a manifest, the code, a launcher and a test.

    The folder must be empty or not exist.

    \b
    becket new greeter
    cd greeter && python -m unittest && becket check -- ./run
    becket new --template provider my-model
    """
    id = folder.absolute().name.lower() if id is None else id
    files = build_files(id, template)
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder} is not empty: nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        with writing(path):
            path.write_text(text, encoding="utf-8")
        if name == LAUNCHER:
            path.chmod(0o755)
    if as_json:
        print_json({"id": id, "folder": str(folder.absolute()), "files": [*files]})
        return
    for name in files:
        print_line(str(folder / name))
    print_message(
        f"cd {shlex.quote(str(folder))}\n"
        "python -m unittest                # run its test\n"
        "becket check -- ./run             # check that it is a valid extension\n"
        "becket run --yes --development    # run it in a host"
    )


def build_files(id: str, template: str = "tool") -> dict[str, str]:
    """Returns the files of an extension with this id, built from a template.

    Raises:
        click.UsageError: the id is invalid.
    """
    chosen = TEMPLATES[template]
    parts = re.findall("[a-z0-9]+", id)
    module = "_".join(parts)
    if not module.isidentifier() or keyword.iskeyword(module) or is_importable(module):
        module = f"extension_{module}"
    name = "".join(part.capitalize() for part in parts)
    if not name.isidentifier() or keyword.iskeyword(name) or name in names_in(chosen.code, chosen.test):
        name = f"Extension{name}"
    names = {
        "id": id,
        "quoted_id": json.dumps(id, ensure_ascii=False),  # quoted, so that `parse_manifest` rejects an invalid one
        "module": module,
        "name": name,
        "command": parts[0] if parts else "show",
    }

    def write(text: str, **more: str) -> str:
        return Template(text).substitute(names, **more)

    manifest = write(chosen.manifest)
    try:
        parse_manifest(parse_toml(manifest.encode(), FILE_NAME), FILE_NAME)
    except BadFile as error:
        raise click.UsageError(f"`{id}` {error.problems[0][1]} (give another one with --id)") from error
    return {
        FILE_NAME: manifest,
        f"{module}.py": write(chosen.code),
        LAUNCHER: write(PROGRAM),
        f"test_{module}.py": write(chosen.test),
        "README.md": write(README, about=chosen.about, tries=write(chosen.tries)),
        ".gitignore": IGNORED,
    }


def names_in(*programs: str) -> set[str]:
    """Returns the class names that programs import or define; the extension's class must have another."""
    imported = [line for program in programs for line in re.findall(r"^from \S+ import (.+)", program, re.MULTILINE)]
    defined = [name for program in programs for name in re.findall(r"^class (\w+)", program, re.MULTILINE)]
    return {*defined, *re.findall(r"\w+", " ".join(imported))}


def is_importable(module: str) -> bool:
    """Returns whether a file of this name would shadow an installed module."""
    return module in sys.stdlib_module_names or importlib.util.find_spec(module) is not None
