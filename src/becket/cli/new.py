"""`becket new`: writes a working extension with manifest, launcher and test, in Python or another language."""

from __future__ import annotations

import importlib.util
import json
import keyword
import re
import shlex
import sys
from collections.abc import Set
from pathlib import Path
from string import Template
from typing import Final

import click

from becket.cli.support.languages import LANGUAGES, PYTHON, build_language_files, build_language_steps
from becket.cli.support.options import FOLDER
from becket.cli.support.output import json_option, print_json, print_line, print_message
from becket.cli.support.templates import IGNORED, PROGRAM, README, TEMPLATES
from becket.conversion.files.reader import writing
from becket.conversion.files.toml import parse_toml
from becket.errors import BadFile
from becket.host.starting.becket_toml import FILE_NAME, parse_manifest

__all__ = ["new"]

LAUNCHER: Final = "run"
PYTHON_STEPS: Final[tuple[tuple[str, str], ...]] = (
    ("python -m unittest", "run its test"),
    ("becket check -- ./run", "check that it is a valid extension"),
    ("becket run --yes --development", "run it in a host"),
)


@click.command()
@click.argument("folder", type=FOLDER)
@click.option("--id", "id", metavar="ID", help="Id of the extension; default: the name of the folder.")
@click.option(
    "--language",
    type=click.Choice([PYTHON, *LANGUAGES]),
    default=PYTHON,
    show_default=True,
    help="Language of the extension; the kit for another one is copied into the folder.",
)
@click.option(
    "--template",
    type=click.Choice([*TEMPLATES]),
    help=f"What an extension in Python offers at first.  [default: {next(iter(TEMPLATES))}]",
)
@json_option
def new(folder: Path, id: str | None, language: str, template: str | None, as_json: bool) -> None:
    """Create a working extension in FOLDER: a manifest, the code, a launcher and a test.

    The folder must be empty or not exist.

    \b
    becket new greeter
    cd greeter && python -m unittest && becket check -- ./run
    becket new --template provider my-model
    """
    id = folder.absolute().name.lower() if id is None else id
    if language == PYTHON:
        files, steps = build_files(id, template or next(iter(TEMPLATES))), PYTHON_STEPS
    elif template is not None:
        raise click.UsageError(f"--template is for extensions in Python: leave it out with --language {language}")
    else:
        names = build_names(id)
        files, steps = build_language_files(language, names), build_language_steps(language, names)
        check_manifest(files[FILE_NAME], id)
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder} is not empty: nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)
    if as_json:
        print_json({"id": id, "folder": str(folder.absolute()), "files": [*files]})
        return
    for name in files:
        print_line(str(folder / name))
    width = max(len(line) for line, _ in steps) + 4
    print_message("\n".join([f"cd {shlex.quote(str(folder))}", *(f"{line:<{width}}# {aim}" for line, aim in steps)]))


def build_files(id: str, template: str = "tool") -> dict[str, str]:
    """Returns the files of an extension with this id, built from a template.

    Raises:
        click.UsageError: the id is invalid.
    """
    chosen = TEMPLATES[template]
    names = build_names(id, names_in(chosen.code, chosen.test))
    module = names["module"]

    def write(text: str, **more: str) -> str:
        return Template(text).substitute(names, **more)

    manifest = write(chosen.manifest)
    check_manifest(manifest, id)
    return {
        FILE_NAME: manifest,
        f"{module}.py": write(chosen.code),
        LAUNCHER: write(PROGRAM),
        f"test_{module}.py": write(chosen.test),
        "README.md": write(README, about=chosen.about, tries=write(chosen.tries)),
        ".gitignore": IGNORED,
    }


def build_names(id: str, taken: Set[str] = frozenset()) -> dict[str, str]:
    """Returns the placeholders of templates, for an extension with this id; `taken` are names of other classes."""
    parts = re.findall("[a-z0-9]+", id)
    module = "_".join(parts)
    if not module.isidentifier() or keyword.iskeyword(module) or is_importable(module):
        module = f"extension_{module}"
    name = "".join(part.capitalize() for part in parts)
    if not name.isidentifier() or keyword.iskeyword(name) or name in taken:
        name = f"Extension{name}"
    return {
        "id": id,
        "quoted_id": json.dumps(id, ensure_ascii=False),  # quoted, so that `parse_manifest` rejects an invalid one
        "module": module,
        "name": name,
        "command": parts[0] if parts else "show",
    }


def check_manifest(text: str, id: str) -> None:
    """Raises click.UsageError if the manifest is invalid, which only the id can cause."""
    try:
        parse_manifest(parse_toml(text.encode(), FILE_NAME), FILE_NAME)
    except BadFile as error:
        raise click.UsageError(f"`{id}` {error.problems[0][1]} (give another one with --id)") from error


def names_in(*programs: str) -> set[str]:
    """Returns the class names that programs import or define; the extension's class must have another."""
    imported = [line for program in programs for line in re.findall(r"^from \S+ import (.+)", program, re.MULTILINE)]
    defined = [name for program in programs for name in re.findall(r"^class (\w+)", program, re.MULTILINE)]
    return {*defined, *re.findall(r"\w+", " ".join(imported))}


def is_importable(module: str) -> bool:
    """Returns whether a file of this name would shadow an installed module."""
    return module in sys.stdlib_module_names or importlib.util.find_spec(module) is not None
