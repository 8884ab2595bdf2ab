"""`becket list`: which extensions there are, and whether each would start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import EXTENSIONS, becket, here, write_extension

from becket.cli.support.exit_codes import ExitCode


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    write_extension(root, "quiet", "")
    write_extension(root, "greedy", "", permissions=["memory.read"])
    write_extension(root, "lost", "", command=["no-such-program"])
    return root


def test_all_extensions_are_listed_with_whether_they_would_start(root: Path) -> None:
    done = here("list", str(root), "--no-data")

    header, *rows = done.stdout.splitlines()
    assert done.exit_code == ExitCode.DONE
    assert header.split() == ["EXTENSION", "VERSION", "DIALECT", "STARTS", "PERMISSIONS", "VARIABLES", "FOLDER"]
    assert [row.split() for row in rows] == [
        ["greedy", "1.0.0", "native", "ask", "memory.read", "-", str(root / "greedy")],
        ["lost", "1.0.0", "native", "no", "-", "-", str(root / "lost")],
        ["quiet", "1.0.0", "native", "yes", "-", "-", str(root / "quiet")],
    ]
    assert done.stderr.startswith("does not start: lost: its command: `no-such-program`: ")
    assert len(done.stderr.splitlines()) == 1


def test_skipped_extensions_are_named_with_the_reason(root: Path) -> None:
    (root / "bad").mkdir()
    (root / "bad" / "becket.toml").write_text("id =", encoding="utf-8")
    (root / "skills" / ".synaps-plugin").mkdir(parents=True)
    (root / "skills" / ".synaps-plugin" / "plugin.json").write_text('{"name": "skills"}', encoding="utf-8")
    (root / "cigen-provider-x").touch()

    words = ("list", str(root), "--no-data", "--disable", "quiet", "--only", "lost", "--only", "quiet")
    plain, as_json = here(*words), here(*words, "--json")

    skipped = [line for line in plain.stderr.splitlines() if line.startswith("skipped: ")]
    assert skipped == [line for line in as_json.stderr.splitlines() if line.startswith("skipped: ")]
    assert [one["id"] for one in json.loads(as_json.stdout)] == ["lost"]
    for path, why in {
        "bad/becket.toml": "is not TOML",
        "skills/.synaps-plugin/plugin.json": "holds no extension",
        "cigen-provider-x": "is not executable",
        "greedy/becket.toml": "left out by --only",
        "quiet/becket.toml": "is disabled",
    }.items():
        assert any(f"{root / path}: {why}" in line for line in skipped), path


@pytest.mark.parametrize(
    "words", [["list", "nosuch"], ["doctor", "nosuch"], ["run", "nosuch"], ["grant", "a", "-r", "nosuch"]]
)
def test_a_root_that_does_not_exist_is_a_mistake_in_the_command_line(words: list[str], tmp_path: Path) -> None:
    done = becket(*words, folder=tmp_path)

    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert "nosuch" in done.stderr


def test_the_list_is_json_for_programs(root: Path) -> None:
    done = here("list", str(root), "--no-data", "--json", "--grant", "greedy=memory.read")

    found = {one["id"]: one for one in json.loads(done.stdout)}
    assert {id: one["starts"] for id, one in found.items()} == {"greedy": "yes", "lost": "no", "quiet": "yes"}
    assert found["greedy"]["granted"] == ["memory.read"]
    assert found["greedy"]["because"] == ""
    assert "no-such-program" in found["lost"]["because"]
    assert found["quiet"]["manifest"] == str(root / "quiet" / "becket.toml")


def test_variables_outside_the_base_list_are_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LS_COLORS", "1")
    write_extension(root, "nosy", "", environment={"pass": ["GITHUB_TOKEN", "HOME"]})
    write_extension(root, "foreign", "", dialect="morphir")

    words = ("list", str(root), "--no-data", "--json", "--inherit-environment", "morphir")
    found = {one["id"]: one for one in json.loads(here(*words).stdout)}

    assert found["nosy"]["variables"] == ["GITHUB_TOKEN"]
    assert "the variable GITHUB_TOKEN" in found["nosy"]["because"]
    assert "LS_COLORS" in found["foreign"]["variables"]
    assert found["quiet"]["variables"] == []
    row = next(line for line in here("list", str(root), "--no-data").stdout.splitlines() if line.startswith("nosy"))
    assert row.split()[-2:] == ["GITHUB_TOKEN", str(root / "nosy")]


def test_the_reason_for_a_prompt_is_shown(root: Path) -> None:
    found = {one["id"]: one for one in json.loads(here("list", str(root), "--data", "state", "--json").stdout)}

    assert found["greedy"]["starts"] == "ask"
    assert "becket grant greedy" in found["greedy"]["because"]


def test_extensions_selected_on_the_command_line_are_listed(root: Path) -> None:
    listed = json.loads(here("list", str(root), "--no-data", "--json", "--only", "quiet").stdout)

    assert [one["id"] for one in listed] == ["quiet"]


def test_manifests_that_cannot_be_used_are_counted(root: Path) -> None:
    (root / "bad").mkdir()
    (root / "bad" / "becket.toml").write_text("id =", encoding="utf-8")

    assert "becket doctor" in here("list", str(root), "--no-data").stderr


def test_without_extensions_nothing_is_written_to_stdout(tmp_path: Path) -> None:
    done = here("list", str(tmp_path), "--no-data")

    assert (done.exit_code, done.stdout) == (ExitCode.DONE, "")
    assert "0 extensions" in done.stderr


def test_the_examples_are_listed() -> None:
    listed = json.loads(here("list", str(EXTENSIONS), "--no-data", "--json").stdout)

    assert [one["id"] for one in listed] == ["census", "dice", "eliza", "guard", "notes"]


def test_extensions_of_all_systems_are_listed_with_their_dialects() -> None:
    examples = EXTENSIONS.parent / "dialects"

    done = here("list", str(EXTENSIONS), *map(str, sorted(examples.iterdir())), "--no-data")

    rows = {row.split()[0]: row.split()[2] for row in done.stdout.splitlines()[1:]}
    assert (
        rows.items()
        >= {
            "notes": "native",
            "journal": "synaps",
            "weather": "nexo",
            "workshop": "roder",
            "validator": "morphir",
            "cigen-provider-make": "cigen",
        }.items()
    )


def test_the_order_of_hooks_is_shown_by_list_and_by_doctor(tmp_path: Path) -> None:
    for id in ("audit", "guard"):
        write_extension(tmp_path / "root", id, "", permissions=["tools.intercept"])
        manifest = tmp_path / "root" / id / "becket.toml"
        text = manifest.read_text(encoding="utf-8")
        manifest.write_text(f'{text}[[hooks]]\nhook = "before_tool_call"\nrequired = true\n', encoding="utf-8")
    write_extension(tmp_path / "root", "quiet", "")
    config = tmp_path / "host.toml"
    config.write_text('roots = ["root"]\ndata = false\n[hooks]\norder = ["guard"]\n', encoding="utf-8")

    assert "guard, audit" in here("list", "--config", str(config)).stderr
    found = {one["id"]: one for one in json.loads(here("list", "--config", str(config), "--json").stdout)}
    assert {id: one["hook_position"] for id, one in found.items()} == {"guard": 1, "audit": 2, "quiet": None}
    assert found["guard"]["required_hooks"] == ["before_tool_call"] == found["guard"]["hooks"]
    assert "guard, audit" in here("doctor", "--config", str(config)).stdout


def test_secrets_of_a_command_are_neither_listed_nor_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "servers"
    folder.mkdir()
    words = ["-c", "import sys", "--api-key=c4n4ry", "postgresql://u:c4n4ry@db/notes", "--token", "c4n4ry"]
    servers = {"mcpServers": {"db": {"command": "python3", "args": words}}}
    (folder / ".mcp.json").write_text(json.dumps(servers), encoding="utf-8")
    data = tmp_path / "data"

    listed = here("list", str(folder), "--data", str(data), "--json")
    ran = becket("run", str(folder), "--data", str(data), "--once", "--yes", "--json")

    [command] = [one["command"] for one in json.loads(listed.stdout)]
    assert command[-4:] == ["--api-key=***", "postgresql://***@db/notes", "--token", "***"]
    audit = (data / "audit.jsonl").read_text(encoding="utf-8")
    assert '"kind":"start"' in audit
    for text in (listed.stdout, listed.stderr, ran.stdout, ran.stderr, audit):
        assert "c4n4ry" not in text
