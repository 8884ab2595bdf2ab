"""`becket new`: writes an extension that works, and its test passes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import becket, here

from becket.cli.new import build_files
from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.templates import TEMPLATES
from becket.conversion.files.toml import parse_toml
from becket.host.starting.becket_toml import load_manifest, parse_manifest

FILES = ["becket.toml", "greeter.py", "run", "test_greeter.py", "README.md", ".gitignore"]
every_template = pytest.mark.parametrize("template", TEMPLATES)


@pytest.fixture
def greeter(tmp_path: Path) -> Path:
    done = here("new", str(tmp_path / "greeter"))
    assert done.exit_code == ExitCode.DONE, done.output
    return tmp_path / "greeter"


def test_a_new_project_has_a_manifest_the_code_a_launcher_and_a_test(greeter: Path) -> None:
    assert sorted(path.name for path in greeter.iterdir()) == sorted(FILES)
    assert load_manifest(greeter / "becket.toml").id == "greeter"
    assert (greeter / "run").stat().st_mode & 0o111


def test_the_output_lists_the_written_files_and_the_next_steps(tmp_path: Path) -> None:
    folder = tmp_path / "my folder" / "greeter"
    done = here("new", str(folder))

    assert done.stdout.splitlines() == [str(folder / name) for name in FILES]
    assert f"cd '{folder}'" in done.stderr


def test_the_output_is_json_for_programs(tmp_path: Path) -> None:
    done = here("new", str(tmp_path / "x"), "--id", "greeter", "--json")

    assert json.loads(done.stdout) == {"id": "greeter", "folder": str(tmp_path / "x"), "files": FILES}


def write(folder: Path, template: str) -> Path:
    done = here("new", "--template", template, str(folder / "greeter"))
    assert done.exit_code == ExitCode.DONE, done.output
    return folder / "greeter"


@every_template
def test_every_template_has_the_same_files_and_a_readme_with_the_commands_to_try_it(
    tmp_path: Path, template: str
) -> None:
    folder = write(tmp_path, template)

    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# greeter\n")
    assert TEMPLATES[template].about in readme
    assert "becket check -- ./run" in readme
    assert "$" not in readme


@pytest.mark.process
@every_template
@pytest.mark.parametrize("runner", [["-m", "unittest"], ["-m", "pytest", "-q", "-p", "no:cacheprovider"]])
def test_the_test_of_a_new_project_passes(tmp_path: Path, template: str, runner: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-B", *runner],
        cwd=write(tmp_path, template),
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.process
def test_a_project_with_the_name_of_an_installed_module_works(tmp_path: Path) -> None:
    here("new", str(tmp_path / "becket"))
    command = [sys.executable, "-B", "-m", "unittest"]
    done = subprocess.run(command, cwd=tmp_path / "becket", capture_output=True, timeout=100, check=False)

    assert done.returncode == 0, done.stderr
    assert here("check", "--", str(tmp_path / "becket" / "run")).exit_code == ExitCode.DONE


@pytest.mark.process
@every_template
def test_a_new_project_passes_every_check(tmp_path: Path, template: str) -> None:
    done = here("check", "--call-tools", "--", str(write(tmp_path, template) / "run"))

    assert done.exit_code == ExitCode.DONE, done.output
    assert not [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    expected = {
        "tool": "tools greet",
        "command": "commands",
        "provider": "providers greeter",
        "settings": "tell_colour",
    }
    assert expected.get(template, "hooks before_tool_call") in done.stdout


@pytest.mark.process
def test_the_hook_of_its_template_blocks_calls_of_other_extensions(tmp_path: Path) -> None:
    write(tmp_path, "tool")
    here("new", "--template", "hook", str(tmp_path / "guard"))
    options = ("--root", str(tmp_path), "--no-data", "--yes")

    done = becket("call", *options, "greeter", "greet", '{"name": "rm -rf"}')

    assert done.returncode == ExitCode.DENIED
    assert "`rm -rf` is forbidden" in done.stderr


def test_an_unknown_template_is_refused(tmp_path: Path) -> None:
    done = here("new", "--template", "poem", str(tmp_path / "x"))

    assert done.exit_code == ExitCode.USAGE
    assert not (tmp_path / "x").exists()


@pytest.mark.process
def test_a_host_runs_a_new_project_and_adds_no_file_to_its_folder(greeter: Path) -> None:
    done = becket("run", str(greeter), "--no-data", "--yes", "--once", "--json")

    (status,) = json.loads(done.stdout)["extensions"]
    assert (done.returncode, status["state"], status["tools"]) == (ExitCode.DONE, "ready", 1)
    assert sorted(path.name for path in greeter.iterdir()) == sorted(FILES)


@pytest.mark.slow
@pytest.mark.process
def test_generated_files_are_typed_and_well_formed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for template in TEMPLATES:
        for name, text in build_files(f"a-{template}", template).items():
            (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", *(sorted(tmp_path.glob("*.py")))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=100, check=False)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("id", "module", "name"),
    [
        ("acme.notes-2", "acme_notes_2", "AcmeNotes2"),
        ("9lives", "extension_9lives", "Extension9lives"),
        ("class", "extension_class", "Class"),
        ("a__b", "a_b", "AB"),
        ("becket", "extension_becket", "Becket"),
        ("json", "extension_json", "Json"),
        ("msgspec", "extension_msgspec", "Msgspec"),
        ("none", "none", "ExtensionNone"),
        ("table", "table", "ExtensionTable"),
        ("extension-server", "extension_server", "ExtensionExtensionServer"),
    ],
)
def test_any_id_gives_names_that_python_can_have(id: str, module: str, name: str) -> None:
    for template in TEMPLATES:
        files = build_files(id, template)

        code = files[f"{module}.py"]
        defined: dict[str, Any] = {"__name__": module}
        exec(compile(code, "x", "exec"), defined)
        compile(files[f"test_{module}.py"], "x", "exec")
        assert next(each for each in defined.values() if getattr(each, "id", None) == id).__name__ in (name, also(name))
        assert parse_manifest(parse_toml(files["becket.toml"].encode(), "becket.toml"), "becket.toml").id == id
        assert f"{module}.py" in files["run"]


def also(name: str) -> str:
    """Returns the other name that a class may have: each template has other names that it must not hide."""
    return name.removeprefix("Extension") if name.startswith("Extension") else f"Extension{name}"


@pytest.mark.parametrize("id", ["a b", "", "..", "Upper", "x" * 65, 'a"\n', 'say-"hi"', "it's"])
def test_an_id_that_no_extension_can_have_is_refused(tmp_path: Path, id: str) -> None:
    done = here("new", str(tmp_path / "x"), "--id", id)

    assert done.exit_code == ExitCode.USAGE
    assert "is no id" in done.stderr
    assert not (tmp_path / "x").exists()


def test_a_folder_with_something_in_it_is_left_alone(greeter: Path) -> None:
    (greeter / "greeter.py").write_text("mine", encoding="utf-8")

    done = here("new", str(greeter))

    assert done.exit_code == ExitCode.USAGE
    assert (greeter / "greeter.py").read_text(encoding="utf-8") == "mine"
