"""The programs on each page run in order, and their output is as shown.

A block whose first line names a file is that file. Any other Python block runs here, with `await` allowed at its top
level and the names of the blocks before it; a text block right behind it is its output. A console block is run by a
shell, line by line; what stands behind a command is its output. Where Node or a package of it is missing, the commands
that need it are passed over.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, Block, read_blocks

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]  # a page may have twenty commands

FILE_NAME = re.compile(r"(?:#|//) ([\w/]+\.(?:py|js|toml))\n")
PATIENCE = 60  # seconds for one command
NODE_MODULES = ROOT / ".node_cache" / "node_modules"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_the_programs_of_a_page_run_and_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": f"documented in {page.name}"}
    blocks = read_blocks(page)
    for block, following in zip_longest(blocks, blocks[1:]):
        if block.language == "console":
            run_commands(block)
        elif named := FILE_NAME.match(block.text):
            write_file(Path(named.group(1)), block.text)
        elif block.language == "python":
            await run_snippet(block, names)
            printed = capsys.readouterr().out
            shown = following.text if following and following.language == "text" and not following.follows else ""
            assert printed == shown, f"{block} prints this"


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


async def run_snippet(block: Block, names: dict[str, object]) -> None:
    source = "\n" * (block.line - 1) + block.text  # errors show the line of the page
    code = compile(source, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    outcome = eval(code, names)
    if inspect.isawaitable(outcome):
        await outcome


def run_commands(block: Block) -> None:
    folder = os.path.dirname(sys.executable)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NODE_PATH": str(NODE_MODULES)}
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        if command.startswith("node ") and (shutil.which("node") is None or not has_packages(block)):
            continue
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        assert done.stdout == shown, f"{block}: `{command}` prints this"
        assert done.returncode == 0


def has_packages(block: Block) -> bool:
    """Returns whether all packages of Node are there that a block names behind its language."""
    return all((NODE_MODULES / package).is_dir() for package in block.words)
