"""The fixtures for pytest, in a project of their own: async tests need no mark, and other projects are left alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

CONFTEST = 'pytest_plugins = ["becket.testing.fixtures"]\n'
EXTENSION = """
from becket.extension import ExtensionServer, tool

class Notes(ExtensionServer):
    id, version = "notes", "1.0.0"

    @tool("Keeps a note.")
    async def keep(self, text: str) -> int:
        await self.host.memory.append(text)
        return len(await self.host.memory.query())

if __name__ == "__main__":
    Notes().run()
"""
TESTS = """
import sys
from pathlib import Path

import pytest

from becket.errors import RemoteError
from notes import Notes

GRANTS = ["memory.read", "memory.write", "tools.register"]
closed = []

async def test_the_fixture_connects_an_extension_in_memory(becket_connect):
    notes = await becket_connect(Notes(), grants=GRANTS)
    closed.append(notes)
    assert await notes.call_tool("keep", {"text": "milk"}) == "1"

def test_connected_peers_are_closed():
    assert closed and all(notes.is_closed for notes in closed)

async def test_two_extensions_share_a_store(becket_connect, becket_store):
    first = await becket_connect(Notes(), grants=GRANTS, store=becket_store)
    second = await becket_connect(Notes(), grants=GRANTS, store=becket_store)
    await first.call_tool("keep", {"text": "milk"})
    assert await second.call_tool("keep", {"text": "tea"}) == "2"

async def test_the_fixture_starts_a_process(becket_start):
    command = [sys.executable, Path(__file__).with_name("notes.py")]
    notes = await becket_start(command, id="notes", grants=["tools.register"])
    with pytest.raises(RemoteError):
        await notes.call_tool("keep", {"text": "milk"})

async def test_the_fixture_connects_two_peers(becket_pair):
    left, right = becket_pair
    right.handle("double")(lambda params: [2 * number for number in params])
    assert await left.call("double", [21]) == [42]
"""


def run_pytest(folder: Path, *words: str, conftest: str = CONFTEST, tests: str = TESTS) -> tuple[int, str]:
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")
    (folder / "notes.py").write_text(EXTENSION, encoding="utf-8")
    (folder / "test_notes.py").write_text(tests, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", encoding="utf-8")
    plugins = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "anyio", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        command, cwd=folder, env=plugins, capture_output=True, encoding="utf-8", timeout=100, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_async_tests_that_use_a_fixture_run_without_a_mark_on_every_loop_that_is_installed(tmp_path: Path) -> None:
    code, output = run_pytest(tmp_path)

    assert code == 0, output
    assert re.search(r"^9 passed", output, re.MULTILINE)  # four on asyncio and on trio, and a plain one


def test_the_project_chooses_the_loop_with_the_fixture_of_anyio(tmp_path: Path) -> None:
    chosen = CONFTEST + 'import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n'

    code, output = run_pytest(tmp_path, conftest=chosen)

    assert code == 0, output
    assert re.search(r"^5 passed", output, re.MULTILINE)


def test_a_failing_test_fails_and_what_it_connected_is_closed(tmp_path: Path) -> None:
    tests = TESTS.replace('== "1"', '== "7"')

    code, output = run_pytest(tmp_path, tests=tests)

    assert code == 1
    assert re.search(r"^2 failed, 7 passed", output, re.MULTILINE)


def test_projects_that_do_not_name_the_plugin_load_nothing_of_it(tmp_path: Path) -> None:
    assert not [point for point in entry_points(group="pytest11") if point.value.startswith("becket")]
    tests = "import sys\n\ndef test_it():\n    assert not [name for name in sys.modules if name.startswith('becket')]\n"

    code, output = run_pytest(tmp_path, conftest="", tests=tests)

    assert code == 0, output
