"""The kit for Go: its emitted types, its example in a real host, its template, and the end of its process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sdk.example import ExampleTests
from tests.sdk.process import ProcessTests
from tools.sdk.go import emit
from tools.sdk.model import Choice, Enumeration, Field, JsonValue, Model, Named, Record, Scalar, TaggedUnion

from becket.cli.new import build_names
from becket.cli.support.languages import build_language_files

KIT = Path(__file__).parents[2] / "sdk" / "go"
PATIENCE = 300  # seconds for the first build, of the standard library too

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")


def run_go(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the go tool without a network."""
    variables = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
    return subprocess.run(
        ["go", *arguments],
        cwd=folder,
        env=variables,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=True,
    )


# -- types


def emit_types(*types: Record | Enumeration | TaggedUnion | Choice) -> str:
    return emit(Model(types=types, methods=(), protocol_version=1, features=("ping",), errors={"busy": 1002}))


def test_absent_members_are_zero_values_or_pointers() -> None:
    text = emit_types(
        Enumeration(name="Mode", doc="A mode.", family="tools", values=("all_at_once", "none")),
        Record(
            name="Call",
            doc="A call.",
            family="tools",
            fields=(
                Field(name="request_id", doc="Its id.", type=Scalar("string"), required=True, nullable=False),
                Field(name="root", doc="", type=Scalar("string"), required=True, nullable=True),
                Field(name="note", doc="", type=Scalar("string"), required=False, nullable=True),
                Field(name="since_ms", doc="", type=Scalar("integer", 0), required=False, nullable=True),
                Field(name="shown", doc="", type=Scalar("boolean"), required=False, nullable=False, default=True),
                Field(name="mode", doc="", type=Named("Mode"), required=False, nullable=False, default="none"),
                Field(name="data", doc="", type=JsonValue(), required=False, nullable=False),
            ),
        ),
    )

    assert "// Call: A call.\ntype Call struct {\n\t// Its id.\n\tRequestID string `json:" in text
    assert 'Root *string `json:"root"`' in text
    assert 'Note string `json:"note,omitempty"`' in text
    assert 'SinceMS *int64 `json:"since_ms,omitempty"`' in text
    assert 'Shown *bool `json:"shown,omitempty"`' in text
    assert 'Mode Mode `json:"mode,omitempty"`' in text
    assert 'Data any `json:"data,omitempty"`' in text
    assert '\tModeAllAtOnce Mode = "all_at_once"\n\tModeNone      Mode = "none"\n' in text


def test_a_tagged_union_is_a_sealed_interface() -> None:
    text = emit_types(
        TaggedUnion(name="Event", doc="An event.", family="x", tag="kind", cases={"text": "Text", "done": "Done"}),
        Record(
            name="Text",
            doc="A text.",
            family="x",
            tag=("kind", "text"),
            fields=(Field(name="content", doc="", type=Scalar("string"), required=True, nullable=False),),
        ),
        Record(name="Done", doc="The end.", family="x", fields=(), tag=("kind", "done")),
    )

    assert "type Event interface{ isEvent() }\n" in text
    assert "func UnmarshalEvent(data []byte) (Event, error) {" in text
    assert 'case "text":\n\t\treturn decodeCase[Text](data)\n' in text
    assert "type Done struct{}\n\nfunc (Done) isEvent() {}\n" in text
    assert 'return encodeRecord("kind", "text", fields(v), nil)' in text


@needs_go
def test_the_kit_is_formatted() -> None:
    done = subprocess.run(["gofmt", "-l", KIT], capture_output=True, encoding="utf-8", timeout=PATIENCE, check=True)
    assert done.stdout == ""


# -- programs


@pytest.fixture(scope="session")
def built_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the manifest of the example and its program."""
    folder = tmp_path_factory.mktemp("go-example")
    shutil.copy(KIT / "example" / "becket.toml", folder)
    run_go("build", "-o", f"{folder}/build/", "./example", folder=KIT)
    return folder


@needs_go
class TestExample(ExampleTests):
    """The example in a host."""

    language = "go"

    @pytest.fixture
    def example(self, built_example: Path) -> Path:
        return built_example


@pytest.fixture(scope="session")
def conform(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the path of the program for the conformance cases."""
    folder = tmp_path_factory.mktemp("go-conform")
    run_go("build", "-o", f"{folder}/", "./conform", folder=KIT)
    return str(folder / "conform")


@needs_go
class TestProcess(ProcessTests):
    """The end of the program for the conformance cases."""

    @pytest.fixture
    def command(self, conform: str) -> list[str]:
        return [conform]


@needs_go
@pytest.mark.process
def test_an_extension_passes_the_conformance_cases(conform: str) -> None:
    command = [sys.executable, "-m", "becket", "conform", "--", conform]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 fail, 0 not offered" in done.stdout + done.stderr


def test_the_steps_for_an_author_name_the_program(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "becket", "new", "--language", "go", tmp_path / "my-greeter"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=True)
    assert "becket check -- ./build/my_greeter " in done.stderr


@needs_go
@pytest.mark.process
@pytest.mark.parametrize("source", ["template", "README"])
def test_a_new_project_builds_without_a_network(source: str, tmp_path: Path) -> None:
    files = build_language_files("go", build_names("greeter"))
    if source == "README":
        (code,) = re.findall(r"```go\n(.*?)```", KIT.joinpath("README.md").read_text(encoding="utf-8"), re.DOTALL)
        assert len([line for line in code.splitlines() if line]) < 15
        files = {name: text for name, text in files.items() if name != "main_test.go"} | {"main.go": code}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    run_go("build", "-o", "build/", ".", folder=tmp_path)
    run_go("test", ".", folder=tmp_path)
    command = [sys.executable, "-m", "becket", "check", "--", str(tmp_path / "build" / "greeter")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout
