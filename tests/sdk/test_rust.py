"""The example of the kit for Rust in a real host, the end of its process, and the conformance cases."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sdk.builds import is_current
from tests.sdk.example import PATIENCE, ExampleTests
from tests.sdk.process import ProcessTests

KIT = Path(__file__).parents[2] / "sdk" / "rust"
EXAMPLE = KIT / "example"
PROGRAM = EXAMPLE / "build" / "bin" / "rust-example"
CONFORM = KIT / "target" / "debug" / "examples" / "conform"


def find_missing() -> str:
    if shutil.which("cargo") is None:
        return "cargo is not installed"
    is_built = is_current(CONFORM, KIT / "src", KIT / "examples") and is_current(PROGRAM, KIT / "src", EXAMPLE / "src")
    return "" if is_built else "the example is not built of its sources: run `make sdk-ready-rust`"


pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(bool(find_missing()), reason=find_missing() or "it is built"),
]


class TestExample(ExampleTests):
    """The example in a host."""

    language = "rust"

    @pytest.fixture
    def example(self) -> Path:
        return EXAMPLE


class TestProcess(ProcessTests):
    """The end of the program for the conformance cases."""

    @pytest.fixture
    def command(self) -> list[str]:
        return [str(CONFORM)]


def test_an_extension_passes_the_conformance_cases() -> None:
    command = [sys.executable, "-m", "becket", "conform", "--", str(CONFORM)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert ", 0 fail, 0 not offered" in done.stdout + done.stderr


@pytest.mark.slow
def test_a_new_project_compiles_without_a_network(tmp_path: Path) -> None:
    project = tmp_path / "greeter"
    subprocess.run([sys.executable, "-m", "becket", "new", "--language", "rust", project], check=True, timeout=PATIENCE)
    command = ["cargo", "check", "--quiet", "--offline", "--tests", "--target-dir", KIT / "target"]
    subprocess.run(command, cwd=project, check=True, timeout=280)
    assert (project / "build").stat().st_mode & 0o100
