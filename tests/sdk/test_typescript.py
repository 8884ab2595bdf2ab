"""The kit for TypeScript: its example in a real host, the end of its process, new projects, and conformance cases."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sdk.builds import is_current
from tests.sdk.example import PATIENCE, ExampleTests
from tests.sdk.process import ProcessTests

KIT = Path(__file__).parents[2] / "sdk" / "typescript"
EXAMPLE = KIT / "example"
CONFORM = KIT / "build" / "test" / "conform.js"

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
]


built = pytest.mark.skipif(
    not is_current(CONFORM, KIT / "src", KIT / "test"),
    reason="the tests of the kit are not built of its sources: run `make sdk-test-typescript`",
)


class TestExample(ExampleTests):
    """The example in a host."""

    language = "typescript"

    @pytest.fixture
    def example(self) -> Path:
        return EXAMPLE


# -- the process


@built
class TestProcess(ProcessTests):
    """The end of the program for the conformance cases."""

    @pytest.fixture
    def command(self) -> list[str]:
        return ["node", str(CONFORM)]


def test_prints_of_child_processes_stay_off_the_wire(tmp_path: Path) -> None:
    program = tmp_path / "main.mjs"
    program.write_text(
        f"import {{ createExtension }} from {str(KIT / 'dist' / 'index.js')!r};\n"
        "import { spawnSync } from 'node:child_process';\n"
        "createExtension({ id: 'it', version: '1' }).run();\n"
        "spawnSync('echo', ['by a child'], { stdio: 'inherit' });\n",
        encoding="utf-8",
    )
    done = subprocess.run(["node", program], input=b"", capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"by a child" in done.stderr


# -- projects, and conformance


def test_a_new_project_runs_without_an_installation(tmp_path: Path) -> None:
    becket = [sys.executable, "-m", "becket"]
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    subprocess.run([*becket, "new", "--language", "typescript", tmp_path / "greeter"], check=True, timeout=PATIENCE)
    check = [*becket, "check", "--call-tools", "--", "node", str(tmp_path / "greeter" / "main.js")]
    done = subprocess.run(check, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False, env=env)
    assert done.returncode == 0, done.stdout
    call = [*becket, "call", "--yes", "--root", str(tmp_path / "greeter"), "greeter", "greet", '{"name": "Ada"}']
    done = subprocess.run(call, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False, env=env)
    assert "Hello, Ada! (1)" in done.stdout, done.stderr
    assert "manifest" not in done.stderr  # the host warns if its code has another id


def test_a_template_for_python_is_refused_with_another_language(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "becket", "new", "--language", "typescript", "--template", "hook", tmp_path / "x"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert "--template is for extensions in Python" in done.stderr


@built
def test_an_extension_passes_the_conformance_cases() -> None:
    command = [sys.executable, "-m", "becket", "conform", "--", "node", str(CONFORM)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert ", 0 fail, 0 not offered" in done.stdout + done.stderr
