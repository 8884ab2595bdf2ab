"""`becket grant` and `becket revoke`: the stored grants, their files, and the audit record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import BECKET, becket, here, write_extension
from tests.cli.terminals import Terminal

from becket.cli.support.exit_codes import ExitCode
from becket.contract.audit import ConsentRefused, GrantChanged
from becket.host.audit_log import read_audit, verify_audit
from becket.host.host import Host
from becket.host.starting.grants_file import GrantEntry, load_grants
from becket.host.starting.start_check import NeedsConsent, StartAllowed

REQUESTED = ["memory.read", "tools.register"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_extension(tmp_path / "root", "notes", "", permissions=REQUESTED)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def run(data: Path, *words: str) -> Any:
    done = here(*words, "--data", str(data), "--json")
    assert done.exit_code == ExitCode.DONE, done.output
    return json.loads(done.stdout)


def entry_of(data: Path, id: str = "notes") -> GrantEntry | None:
    return load_grants(data / "grants.toml").get(id)


def test_named_permissions_are_given(data: Path) -> None:
    received = run(data, "grant", "notes", "memory.read", "memory.write")

    assert (received["allow"], received["deny"]) == (["memory.read", "memory.write"], [])
    assert entry_of(data) == GrantEntry(("memory.read", "memory.write"))


def test_grants_are_bound_to_the_current_files_where_these_are_found(root: Path, data: Path) -> None:
    run(data, "grant", "notes", *REQUESTED, "--root", str(root))

    survey = Host([root], data=data).survey()
    entry = entry_of(data)
    assert entry is not None
    assert entry.digest
    assert isinstance(survey.start_decisions["notes"], StartAllowed)


def test_the_hosts_own_files_do_not_count_where_they_lie_in_the_extensions_folder(root: Path) -> None:
    data = root / "notes" / "state"
    for _ in range(2):  # the second time there are some
        run(data, "grant", "notes", *REQUESTED, "--root", str(root))

    assert isinstance(Host([root], data=data).survey().start_decisions["notes"], StartAllowed)


def test_named_variables_are_given_for_the_current_files(tmp_path: Path, data: Path) -> None:
    root = write_extension(tmp_path / "root", "notes", "", environment={"pass": ["EDITOR", "GITHUB_TOKEN"]})

    received = run(data, "grant", "notes", "--variable", "EDITOR", "--root", str(root))

    assert received["variables"] == ["EDITOR"]
    refused = Host([root], data=data).survey().start_decisions["notes"]
    assert isinstance(refused, NeedsConsent)
    assert refused.requested == ("GITHUB_TOKEN",)
    run(data, "grant", "notes", "--variable", "GITHUB_TOKEN", "--root", str(root))
    assert isinstance(Host([root], data=data).survey().start_decisions["notes"], StartAllowed)


def test_without_names_the_variables_are_given_as_well(tmp_path: Path, data: Path) -> None:
    root = write_extension(tmp_path / "root", "notes", "", environment={"pass": ["EDITOR"]})

    assert run(data, "grant", "notes", "--yes", "--root", str(root))["variables"] == ["EDITOR"]

    assert isinstance(Host([root], data=data).survey().start_decisions["notes"], StartAllowed)


def test_the_prompt_shows_the_command_the_folder_and_the_variables(tmp_path: Path, data: Path) -> None:
    root = write_extension(tmp_path / "root", "notes", "", environment={"pass": ["GITHUB_TOKEN"]})

    done = here("grant", "notes", "--root", str(root), "--data", str(data))

    assert done.exit_code == ExitCode.DENIED
    assert f"{root}/notes/notes.py" in done.stderr
    assert f"it runs in the folder {root}/notes" in done.stderr
    assert "it requests the variable GITHUB_TOKEN, which looks like a secret" in done.stderr


def test_without_names_all_requested_permissions_are_granted(root: Path, data: Path) -> None:
    run(data, "grant", "notes", "--yes", "--root", str(root))

    entry = entry_of(data)
    assert entry is not None
    assert entry.allow == tuple(REQUESTED)


def test_the_roots_may_come_from_a_configuration(root: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text('roots = ["root"]', encoding="utf-8")

    run(data, "grant", "notes", "--yes", "--config", str(tmp_path / "host.toml"))

    assert entry_of(data) is not None


def test_without_names_and_without_a_terminal_nothing_is_granted(root: Path, data: Path) -> None:
    done = here("grant", "notes", "--root", str(root), "--data", str(data))

    assert done.exit_code == ExitCode.DENIED
    assert "memory.read" in done.stderr
    assert not data.exists()


@pytest.mark.process
@pytest.mark.parametrize(("response", "code"), [("y", ExitCode.DONE), ("n", ExitCode.DENIED)])
def test_the_user_is_prompted_at_the_terminal(root: Path, data: Path, response: str, code: ExitCode) -> None:
    command = [*BECKET, "grant", "notes", "--root", str(root), "--data", str(data)]
    with Terminal(command) as terminal:
        terminal.expect(f"{root}/notes/notes.py")
        terminal.expect("memory.read")
        terminal.expect("[y/N]")
        terminal.enter(response)
        assert terminal.end() == code

    assert (data / "grants.toml").exists() is (response == "y")


def test_a_variable_that_looks_like_a_secret_is_part_of_the_prompt(tmp_path: Path, data: Path) -> None:
    root = write_extension(tmp_path / "root", "notes", "")
    with (root / "notes" / "becket.toml").open("a", encoding="utf-8") as file:
        file.write('[environment]\npass = ["NOTES_TOKEN"]\n')

    assert "NOTES_TOKEN" in here("grant", "notes", "--root", str(root), "--data", str(data)).stderr


def test_an_extension_that_is_not_found_needs_names(tmp_path: Path, data: Path) -> None:
    done = here("grant", "notes", "--root", str(tmp_path), "--data", str(data))

    assert done.exit_code == ExitCode.NOT_FOUND
    assert "--root" in done.stderr


@pytest.mark.parametrize("command", ["grant", "revoke"])
def test_a_permission_that_does_not_exist_changes_nothing(data: Path, command: str) -> None:
    done = here(command, "notes", "memory.raed", "--data", str(data))

    assert done.exit_code == ExitCode.USAGE
    assert "memory.raed" in done.stderr
    assert not data.exists()


def test_a_revoked_permission_is_denied_from_then_on(data: Path) -> None:
    run(data, "grant", "notes", "memory.read", "memory.write")

    received = run(data, "revoke", "notes", "memory.write")

    assert (received["allow"], received["deny"]) == (["memory.read"], ["memory.write"])
    assert entry_of(data) == GrantEntry(("memory.read",), ("memory.write",))


def test_without_names_the_whole_approval_is_removed(data: Path) -> None:
    run(data, "grant", "notes", "memory.read")
    run(data, "revoke", "notes")

    assert entry_of(data) is None
    done = here("revoke", "notes", "--data", str(data))
    assert done.exit_code == ExitCode.NOT_FOUND
    assert str(data) in done.stderr


def test_every_change_is_in_the_audit(data: Path) -> None:
    run(data, "grant", "notes", "memory.read", "memory.write")
    run(data, "revoke", "notes", "memory.write")
    run(data, "revoke", "notes")

    assert [record.event for record in read_audit(data / "audit.jsonl")] == [
        GrantChanged("notes", "memory.read", True, "operator"),
        GrantChanged("notes", "memory.write", True, "operator"),
        GrantChanged("notes", "memory.write", False, "operator"),
        GrantChanged("notes", "memory.read", False, "operator"),
    ]
    assert verify_audit(data / "audit.jsonl") == []


@pytest.mark.process
def test_a_refusal_at_the_terminal_is_stored_and_an_operator_undoes_it(root: Path, data: Path) -> None:
    start = [*BECKET, "run", str(root), "--data", str(data), "--once"]
    with Terminal(start, columns=200) as terminal:
        terminal.expect("agree? [y/N]")
        terminal.enter("n")
        assert terminal.end() == ExitCode.NOT_RUNNING
    with Terminal(start, columns=200) as terminal:
        assert terminal.end() == ExitCode.NOT_RUNNING
        assert "agree?" not in terminal.text
        assert "becket revoke notes" in terminal.text
    assert becket("run", str(root), "--data", str(data), "--once", "--yes").returncode == ExitCode.NOT_RUNNING
    (listed,) = run(data, "list", str(root))
    assert (listed["starts"], "refused" in listed["because"]) == ("no", True)

    run(data, "revoke", "notes")

    with Terminal(start, columns=200) as terminal:
        terminal.expect("agree? [y/N]")
        terminal.enter("n")
        assert terminal.end() == ExitCode.NOT_RUNNING
    assert run(data, "grant", "notes", "--yes", "--root", str(root))["refused"] is False
    assert isinstance(Host([root], data=data).survey().start_decisions["notes"], StartAllowed)
    events = [record.event for record in read_audit(data / "audit.jsonl")]
    assert [(event.by, event.withdrawn) for event in events if isinstance(event, ConsentRefused)] == [
        ("answer", False),
        ("operator", True),
        ("answer", False),
        ("operator", True),
    ]


def test_changes_since_the_last_grant_are_shown(root: Path, data: Path) -> None:
    run(data, "grant", "notes", "--yes", "--root", str(root))
    (root / "notes" / "new.py").touch()

    done = here("grant", "notes", "--root", str(root), "--data", str(data))

    assert "since the last consent its files have changed: new.py (new)" in done.stderr.splitlines()


def test_the_prompt_shows_the_command_of_the_host_configuration(root: Path, data: Path, tmp_path: Path) -> None:
    config = tmp_path / "host.toml"
    config.write_text(
        f'roots = ["{root}"]\n[extensions.notes]\ncommand = ["/bin/true"]\nenv = {{ LD_X = "1" }}\n', encoding="utf-8"
    )

    done = here("grant", "notes", "--config", str(config), "--data", str(data))

    assert done.stderr.splitlines()[0] == "notes 1.0.0 wants to run: /bin/true"
    assert "the host's configuration gives it the variables LD_X" in done.stderr.splitlines()


def test_the_text_output_is_one_line(data: Path) -> None:
    done = here("grant", "notes", "memory.read", "--data", str(data))

    assert done.stdout == "notes: allowed: memory.read; denied: nothing\n"


def test_a_file_that_cannot_be_read_is_not_written_over(data: Path) -> None:
    data.mkdir()
    (data / "grants.toml").write_text("[notes", encoding="utf-8")

    done = here("grant", "notes", "memory.read", "--data", str(data))

    assert done.exit_code == ExitCode.FILES
    assert (data / "grants.toml").read_text(encoding="utf-8") == "[notes"
