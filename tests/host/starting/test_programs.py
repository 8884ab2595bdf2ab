"""A program is an absolute path from the search path of the host, and arguments arrive unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from becket.errors import ExtensionRefused
from becket.host.starting.environment import build_extension_environment
from becket.host.starting.programs import find_program, list_program_folders, relocate_command, resolve_command

ECHO = "#!/bin/sh\necho {}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an extension, a folder of the system's programs, and a foreign one."""
    for place in ("system", "notes", "outside"):
        (tmp_path / place / "bin").mkdir(parents=True)
        for name in ("tool", "bin/run"):
            write_program(tmp_path / place / name, place)
    return tmp_path / "notes"


def write_program(path: Path, says: str) -> None:
    path.write_text(ECHO.format(says), encoding="utf-8")
    path.chmod(0o755)


def resolve(folder: Path, *command: str, is_trusted: bool = False, is_listed: bool = False) -> tuple[str, ...]:
    folders = [str(folder.parent / "system"), "/usr/bin", "/bin"]
    return resolve_command("notes", command, str(folder), folders, is_trusted=is_trusted, is_listed=is_listed)


def refusal(folder: Path, *command: str, is_listed: bool = False) -> str:
    with pytest.raises(ExtensionRefused) as caught:
        resolve(folder, *command, is_listed=is_listed)
    assert caught.value.id == "notes"
    return caught.value.because


# -- programs


def test_a_name_is_found_in_the_folders_of_the_host_never_in_the_extensions(folder: Path) -> None:
    assert resolve(folder, "tool", "-x") == (str(folder.parent / "system" / "tool"), "-x")


@pytest.mark.process
@pytest.mark.parametrize("path", [":{system}", "{system}:", ".:{system}", "{system}"])
def test_with_the_current_folder_on_the_path_the_extensions_own_program_still_does_not_run(
    folder: Path, path: str
) -> None:
    folders = list_program_folders(path.format(system=folder.parent / "system"))

    command = resolve_command("notes", ["tool"], str(folder), folders)
    run = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True, env=build_extension_environment({}))

    assert run.stdout == b"system\n"


def test_a_path_in_the_extensions_folder_is_made_absolute(folder: Path) -> None:
    assert resolve(folder, "./tool") == (f"{folder}/tool",)
    assert resolve(folder, "bin/run") == (str(folder / "bin" / "run"),)


def test_an_absolute_program_must_be_one_of_the_systems(folder: Path) -> None:
    assert resolve(folder, str(folder.parent / "system" / "tool")) == (str(folder.parent / "system" / "tool"),)
    assert "none of the folders" in refusal(folder, str(folder.parent / "outside" / "tool"))
    assert "none of the folders" in refusal(folder, str(folder.parent / "system" / ".." / "outside" / "tool"))
    assert "none of the folders" in refusal(folder, str(folder / "tool"))


def test_an_operator_may_name_any_program(folder: Path) -> None:
    program = str(folder.parent / "outside" / "tool")

    assert resolve(folder, program, "../outside", is_trusted=True) == (program, "../outside")


def test_a_program_of_a_list_may_be_anywhere_but_not_outside_its_folder_by_a_relative_path(folder: Path) -> None:
    program = str(folder.parent / "outside" / "tool")
    (folder / "out").symlink_to("../outside/tool")

    assert resolve(folder, program, is_listed=True) == (program,)
    assert resolve(folder, "./out", is_listed=True) == (f"{folder}/out",)
    assert "leads out" in refusal(folder, "../outside/tool", is_listed=True)
    assert "no such file" in refusal(folder, "/no/such/tool", is_listed=True)


@pytest.mark.parametrize("program", ["../outside/tool", "bin/../../outside/tool", "./../notes/../outside/tool"])
def test_a_path_out_of_the_folder_is_refused(folder: Path, program: str) -> None:
    assert "leads out" in refusal(folder, program)


def test_a_folder_that_only_begins_alike_is_another(folder: Path) -> None:
    (folder.parent / "notes-evil").mkdir()
    write_program(folder.parent / "notes-evil" / "tool", "evil")

    assert "leads out" in refusal(folder, "../notes-evil/tool")


def test_a_link_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "out").symlink_to("../outside/tool")
    (folder / "elsewhere").symlink_to("../outside")

    assert "leads out" in refusal(folder, "./out")
    assert "leads out" in refusal(folder, "elsewhere/tool")


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "in").symlink_to("bin/run")

    assert resolve(folder, "./in") == (f"{folder}/in",)


@pytest.mark.parametrize(
    ("program", "because"),
    [
        ("./none", "no such file"),
        ("./bin", "no regular file"),
        ("./pipe", "no regular file"),
        ("./circle", "no regular file"),
        ("./plain", "not executable"),
        ("none", "no such program"),
        ("", "is no name"),
        ("-c", "is no name"),
        ("..", "no such program"),
        ("tool; rm -rf /", "no such file"),
        ("$(tool)", "no such program"),
        ("tool\ntool", "no such program"),
        ("tool x", "no such program"),
    ],
)
def test_a_file_that_is_not_a_program_is_refused(folder: Path, program: str, because: str) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "plain").write_text("", encoding="utf-8")
    (folder / "circle").symlink_to("circle")

    assert because in refusal(folder, program)


def test_a_device_is_not_a_program(folder: Path) -> None:
    (folder / "null").symlink_to("/dev/null")

    assert "leads out" in refusal(folder, "./null")
    with pytest.raises(ExtensionRefused) as caught:
        resolve_command("notes", ["/dev/null"], str(folder), ["/dev"])
    assert "no regular file" in caught.value.because


def test_an_extension_without_a_folder_has_no_paths_in_it() -> None:
    assert resolve_command("notes", ["sh", "../x"], None, ["/bin"]) == ("/bin/sh", "../x")
    with pytest.raises(ExtensionRefused):
        resolve_command("notes", ["./tool"], None, ["/bin"])


# -- arguments


def test_arguments_that_name_files_or_folders_of_the_extension_become_absolute(folder: Path) -> None:
    (folder / "in").symlink_to("bin")
    command = ["tool", "bin/run", "./bin", ".", "--root=bin", "-x=./tool", "in/../tool"]

    assert resolve(folder, *command)[1:] == (
        f"{folder}/bin/run",
        f"{folder}/bin",
        f"{folder}",
        f"--root={folder}/bin",
        f"-x={folder}/tool",
        f"{folder}/tool",
    )


def test_other_arguments_are_not_resolved(folder: Path) -> None:
    (folder / "-x").touch()
    command = ["tool", "", "-x", "--root=../x", "--root=", "a=bin", "not/there", "/etc/passwd", "x" * 10_000]

    assert resolve(folder, *command)[1:] == tuple(command[1:])


def test_arguments_of_the_operator_become_absolute_where_they_name_files_of_the_extension(folder: Path) -> None:
    program = str(folder.parent / "outside" / "tool")

    assert resolve(folder, program, "bin", "../outside", is_trusted=True)[1:] == (f"{folder}/bin", "../outside")


def test_a_module_with_the_name_of_a_folder_stays_a_module(folder: Path) -> None:
    (folder / "notes").mkdir()

    assert resolve(folder, "python3", "-m", "notes", "bin")[1:] == ("-m", "notes", "bin")
    assert resolve(folder, "env", "-i", "python3", "bin/run")[1:] == ("-i", "python3", "bin/run")
    assert resolve(folder, "env", "A=1", "python3", "bin/run")[1:] == ("A=1", "python3", f"{folder}/bin/run")


@pytest.mark.parametrize(
    "word", ["../outside/tool", "..", "bin/../../outside/bin/run", "out", "pipe", "circle", "--require=../outside/tool"]
)
def test_an_argument_that_names_something_outside_or_odd_is_refused(folder: Path, word: str) -> None:
    (folder / "out").symlink_to("../outside/tool")
    (folder / "circle").symlink_to("circle")
    os.mkfifo(folder / "pipe")

    assert refusal(folder, "tool", "-x", word).startswith(f"`{word}`: ")


@pytest.mark.process
def test_no_argument_reaches_a_shell(tmp_path: Path) -> None:
    words = ["; touch pwned", "$(touch pwned)", "`touch pwned`", "a\nb", "--", "-rf", "*", "~", "%PATH%", "é", ""]
    (tmp_path / "main.py").write_text("import json, sys; print(json.dumps(sys.argv[1:]))", encoding="utf-8")
    folders = list_program_folders("/usr/bin:/bin", [os.path.dirname(sys.executable)])

    command = resolve_command("notes", ["python3", "main.py", *words], str(tmp_path), folders)
    run = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=True)

    assert json.loads(run.stdout) == words
    assert [path.name for path in tmp_path.iterdir()] == ["main.py"]


# -- commands in a copy


def test_every_path_into_a_folder_leads_into_its_copy(tmp_path: Path) -> None:
    folder = str(tmp_path / "notes")
    command = [f"{folder}/bin/run", folder, f"{folder}/", f"--config={folder}/a.toml", f"a=b={folder}/c"]

    moved = relocate_command(command, folder, "/copy")

    assert moved == ("/copy/bin/run", "/copy", "/copy", "--config=/copy/a.toml", "a=b=/copy/c")


def test_other_arguments_of_a_foreign_command_are_unchanged(tmp_path: Path) -> None:
    command = ["/usr/bin/python3", "main.py", "-", "", "./a=b", f"{tmp_path}/notes-evil/x", f"--x={tmp_path}", "../x"]

    assert relocate_command(command, str(tmp_path / "notes"), "/copy") == tuple(command)


def test_a_path_that_leads_into_a_folder_by_a_link_is_known(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "main.py").touch()
    (tmp_path / "link").symlink_to("notes")

    moved = relocate_command([f"{tmp_path}/link/main.py"], str(tmp_path / "notes"), "/copy")

    assert moved == ("/copy/main.py",)


# -- folders of programs


def test_the_folders_are_the_search_path_and_some_more_without_duplicates() -> None:
    assert list_program_folders(":/a:b:/c", ["/d", "/a"]) == ("/a", "/c", "/d")


def test_a_program_is_the_first_that_can_be_executed(tmp_path: Path) -> None:
    for place in "abc":
        (tmp_path / place).mkdir()
    (tmp_path / "a" / "tool").mkdir()
    (tmp_path / "b" / "tool").write_text("", encoding="utf-8")
    write_program(tmp_path / "c" / "tool", "c")

    assert find_program("tool", [str(tmp_path / place) for place in "abc"]) == str(tmp_path / "c" / "tool")
    assert find_program("tool", [str(tmp_path / "a")]) is None
