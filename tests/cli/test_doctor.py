"""`becket doctor`: reports every problem with its file, the reason and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import BECKET, ODD, becket, here, write_extension
from tests.cli.terminals import Terminal

from becket.cli.support.exit_codes import ExitCode
from becket.contract.audit import GrantChanged
from becket.host.audit_log import AuditFile
from becket.host.starting.grants_file import edit_grants
from becket.host.starting.pending_revocations import add_pending
from becket.stores.sqlite import SqliteStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_extension(tmp_path / "root", "quiet", "")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir(mode=0o700)
    return tmp_path / "data"


def examine(root: Path, *words: str) -> Any:
    return json.loads(here("doctor", str(root), "--json", *words).stdout)


def problems(root: Path, data: Path, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = examine(root, "--data", str(data), *words)["problems"]
    return found


def test_where_nothing_is_wrong_this_is_reported(root: Path, tmp_path: Path) -> None:
    done = here("doctor", str(root), "--data", str(tmp_path / "data"))

    assert (done.exit_code, done.stdout) == (ExitCode.DONE, "")
    assert "1 extension, 1 would start; 0 errors" in done.stderr
    assert not (tmp_path / "data").exists()


def test_each_problem_has_its_file_the_reason_and_a_hint(root: Path) -> None:
    write_extension(root, "greedy", "", permissions=["memory.read"])
    write_extension(root, "lost", "", command=["no-such-program"])
    write_extension(root, "lonely", "", after=["nobody"])
    bad = root / "bad" / "becket.toml"
    bad.parent.mkdir()
    bad.write_text('id = "bad"\nversion = "1.0.0"\ncommand = "x"\n', encoding="utf-8")

    received = examine(root, "--no-data")

    assert (received["ok"], received["extensions"], received["would_start"]) == (False, 4, 2)
    found = {one["extension"] or one["path"]: one for one in received["problems"]}
    assert found.keys() == {str(bad), "greedy", "lost", "lonely"}
    assert found[str(bad)]["problem"].startswith("/command")
    assert "becket run --yes" in found["greedy"]["hint"]
    assert "no-such-program" in found["lost"]["problem"]
    assert found["lost"]["path"] == str(root / "lost" / "becket.toml")
    assert "nobody" in found["lonely"]["problem"]
    assert all(one["hint"] for one in received["problems"])


def test_the_text_output_is_a_line_with_a_hint_below(root: Path) -> None:
    write_extension(root, "greedy", "", permissions=["memory.read"])

    done = here("doctor", str(root), "--no-data")

    first, second = done.stdout.splitlines()
    assert done.exit_code == ExitCode.DONE
    assert first.startswith(f"waiting: greedy: {root / 'greedy' / 'becket.toml'}: ")
    assert second.startswith("    ")
    assert done.stderr == "2 extensions, 1 would start; 0 errors, 1 waiting, 0 warnings, 0 notes\n"


def test_variables_outside_the_base_list_are_a_note_and_inherited_ones_a_warning(
    root: Path, data: Path, tmp_path: Path
) -> None:
    write_extension(root, "nosy", "", environment={"pass": ["GITHUB_TOKEN", "HOME"]})
    here("grant", "nosy", "--yes", "--root", str(root), "--data", str(data))
    config = tmp_path / "host.toml"
    config.write_text('inherit_environment = ["cigen"]\n', encoding="utf-8")

    received = problems(root, data, "--config", str(config), "--inherit-environment", "morphir")

    assert [(one["severity"], one["extension"]) for one in received] == [("warning", None)] * 2 + [("note", "nosy")]
    assert ["`cigen`" in received[0]["problem"], "`morphir`" in received[1]["problem"]] == [True, True]
    assert received[2]["problem"].endswith(": GITHUB_TOKEN")


def test_a_folder_that_cannot_be_copied_is_an_error_until_the_operator_lets_it_run_in_place(
    root: Path, data: Path, tmp_path: Path
) -> None:
    write_extension(root, "greedy", "", permissions=["memory.read"])
    (root / "greedy" / "out").symlink_to("..")
    here("grant", "greedy", "--yes", "--root", str(root), "--data", str(data))
    config = tmp_path / "host.toml"
    config.write_text("[extensions.greedy]\nin_place = true\n", encoding="utf-8")

    [problem] = problems(root, data)

    assert str(root / "greedy" / "out") in problem["problem"]
    assert "in_place = true" in problem["hint"]
    assert problems(root, data, "--config", str(config)) == []


def test_an_undecided_extension_is_listed_with_both_commands_to_decide(root: Path, data: Path) -> None:
    write_extension(root, "greedy", "", permissions=["memory.read", "memory.write"])

    received = examine(root, "--data", str(data), "--grant", "greedy=memory.read")

    assert received["ok"]
    (problem,) = received["problems"]
    assert (problem["severity"], problem["code"]) == ("waiting", "consent_missing")
    assert "becket grant greedy" in problem["hint"]
    assert "becket revoke greedy memory.write" in problem["hint"]


def test_each_problem_has_a_code_for_its_kind(root: Path, data: Path) -> None:
    write_extension(root, "greedy", "", permissions=["memory.read"])
    write_extension(root, "lost", "", command=["no-such-program"])
    write_extension(root, "lonely", "", after=["nobody"])
    write_extension(root, "vague", "", permissions=["memory.raed"])
    (root / "bad").mkdir()
    (root / "bad" / "becket.toml").write_text("id = 1", encoding="utf-8")

    codes = {one["extension"]: (one["severity"], one["code"]) for one in problems(root, data)}

    assert codes == {
        None: ("error", "manifest_invalid"),
        "greedy": ("waiting", "consent_missing"),
        "lonely": ("error", "dependency_missing"),
        "lost": ("error", "command_invalid"),
        "vague": ("error", "permission_unknown"),
    }


def test_all_errors_of_a_manifest_are_reported_together_with_suggestions(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "becket.toml").write_text(
        'id = "bad"\nverzion = "1.0.0"\ncommand = ["x"]\npermissions = ["memory.raed", "tools.register"]\n'
        'dialect = "nativ"\n[[hooks]]\nhook = "before_tol_call"\n',
        encoding="utf-8",
    )

    found = examine(tmp_path, "--no-data")["problems"]

    assert {one["problem"].partition(":")[0]: one["hint"] for one in found} == {
        "/dialect": "did you mean `native`?",
        "/hooks/0/hook": "did you mean `before_tool_call`?",
        "/permissions/0": "did you mean `memory.read`?",
        "/verzion": "did you mean `version` of the manifest itself?",
        "/version": 'give it a version: `version = "0.1.0"`',
    }


# -- as if consent were given


@pytest.mark.parametrize("name", ["list", "doctor"])
def test_with_yes_extensions_are_checked_as_if_consent_were_given_and_nothing_is_written(
    root: Path, tmp_path: Path, name: str
) -> None:
    write_extension(root, "greedy", "", permissions=["memory.read"], environment={"pass": ["GITHUB_TOKEN"]})
    write_extension(root, "lost", "", command=["no-such-program"])

    done = here(name, str(root), "--data", str(tmp_path / "data"), "--yes", "--json")

    received = json.loads(done.stdout)
    if name == "list":
        starting = {one["id"]: one["granted"] for one in received if one["starts"] == "yes"}
        assert starting == {"greedy": ["memory.read"], "quiet": []}
    else:
        assert received["would_start"] == 2
        assert {one["extension"] for one in received["problems"] if one["severity"] in ("error", "waiting")} == {"lost"}
    assert not (tmp_path / "data").exists()


GREEDY = """
from becket import ExtensionServer

class Greedy(ExtensionServer):
    id, version = "greedy", "1.0.0"

Greedy().run()
"""


@pytest.mark.process
def test_with_yes_and_a_start_no_consent_is_written(root: Path, data: Path) -> None:
    write_extension(root, "greedy", GREEDY, permissions=["memory.read"], environment={"pass": ["GITHUB_TOKEN"]})

    words = ("doctor", str(root), "--data", str(data), "--only", "greedy", "--start", "--json")
    without, with_yes = (json.loads(becket(*words, *more).stdout) for more in ([], ["--yes"]))

    assert {one["code"] for one in without["problems"]} >= {"consent_missing"}
    assert {one["severity"] for one in with_yes["problems"]} == {"note"}
    assert not (data / "grants.toml").exists()


# -- the files of the host


def test_a_configuration_that_cannot_be_used_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_text("rots = []", encoding="utf-8")

    done = here("doctor", "--config", str(path), "--json")

    received = json.loads(done.stdout)
    assert done.exit_code == ExitCode.FAILED
    assert [(one["path"], one["problem"]) for one in received["problems"]] == [
        (str(path), "/rots: is unknown: did you mean `roots`?")
    ]
    assert [one["code"] for one in received["problems"]] == ["config_file_invalid"]


def test_grants_that_cannot_be_read_are_a_problem(root: Path, data: Path) -> None:
    (data / "grants.toml").write_text('[notes]\nallow = ["memory.raed"]', encoding="utf-8")

    (problem,) = problems(root, data)

    assert problem["path"] == str(data / "grants.toml")
    assert "memory.raed" in problem["problem"]


def test_a_folder_that_other_users_can_read_is_a_warning(root: Path, data: Path) -> None:
    data.chmod(0o755)

    (problem,) = problems(root, data)

    assert (problem["severity"], problem["hint"]) == ("warning", f"chmod 700 {data}")


def test_an_audit_that_was_changed_is_a_problem(root: Path, data: Path) -> None:
    file = AuditFile(data / "audit.jsonl")
    for name in ("memory.read", "memory.write"):
        file.write(GrantChanged("notes", name, True, "operator"), 1)
    file.close()
    text = (data / "audit.jsonl").read_text(encoding="utf-8")
    (data / "audit.jsonl").write_text(text.replace("memory.read", "memory.raed") + '{"seq"', encoding="utf-8")

    found = problems(root, data)

    assert [(one["path"], one["severity"]) for one in found] == [
        (f"{data / 'audit.jsonl'}:2", "error"),
        (f"{data / 'audit.jsonl'}:3", "warning"),
    ]


def test_a_list_of_trust_that_cannot_be_read_is_a_problem(root: Path, data: Path) -> None:
    (data / "trust.json").write_text("{", encoding="utf-8")

    (problem,) = problems(root, data)

    assert "trust" in problem["hint"]


def test_a_file_that_is_not_a_store_is_a_problem(root: Path, data: Path) -> None:
    (data / "store.sqlite").write_text("not a store", encoding="utf-8")

    (problem,) = problems(root, data)

    assert problem["path"] == str(data / "store.sqlite")


# -- with a start


BROKEN = "import sys; sys.exit('not today')"


@pytest.mark.process
def test_with_a_start_an_extension_that_ends_before_it_is_ready_is_reported(root: Path) -> None:
    write_extension(root, "broken", BROKEN)

    done = becket("doctor", str(root), "--no-data", "--start", "--json", "--only", "broken")

    (problem,) = [one for one in json.loads(done.stdout)["problems"] if one["severity"] == "error"]
    assert done.returncode == ExitCode.FAILED
    assert "not today" in problem["problem"]
    assert problem["hint"] == f"try: becket check --folder {root / 'broken'} -- python3 broken.py"


@pytest.mark.process
def test_with_a_start_another_id_in_the_code_than_in_the_manifest_is_a_warning(root: Path) -> None:
    write_extension(root, "gredy", GREEDY)

    done = becket("doctor", str(root), "--no-data", "--start", "--json", "--only", "gredy")

    (problem,) = [one for one in json.loads(done.stdout)["problems"] if one["severity"] == "warning"]
    assert done.returncode == ExitCode.DONE
    assert (problem["extension"], problem["code"]) == ("gredy", "id_mismatch")
    assert "`gredy`" in problem["problem"]
    assert "`greedy`" in problem["problem"]


@pytest.mark.process
def test_with_a_start_a_tool_that_is_disabled_is_reported_once(root: Path) -> None:
    write_extension(root, "odd", ODD, permissions=["tools.register"])

    done = becket("doctor", str(root), "--no-data", "--yes", "--start", "--only", "odd")

    received = [line for line in done.stdout.splitlines() + done.stderr.splitlines() if "`stretch`" in line]
    assert len(received) == 1
    assert received[0].startswith("warning: odd: ")


@pytest.mark.process
def test_with_a_start_a_running_host_is_reported(root: Path, data: Path) -> None:
    store = SqliteStore(data / "store.sqlite")
    try:
        done = becket("doctor", str(root), "--data", str(data), "--start", "--json")
    finally:
        store.close()

    (problem,) = json.loads(done.stdout)["problems"]
    assert problem["path"] == str(data / "store.sqlite")
    assert problem["hint"]


@pytest.mark.process
def test_on_a_terminal_the_report_has_colours_and_the_same_text(root: Path) -> None:
    write_extension(root, "greedy", "", permissions=["memory.read"])
    with Terminal([*BECKET, "doctor", str(root), "--no-data"], columns=300) as terminal:
        assert terminal.end() == ExitCode.DONE

    assert "\x1b[36mwaiting" in terminal.raw
    assert terminal.text.startswith(f"waiting: greedy: {root / 'greedy' / 'becket.toml'}: ")


def test_a_revocation_that_is_not_persistent_is_reported(root: Path, data: Path) -> None:
    edit_grants(data / "grants.toml", "quiet", lambda entry: entry.with_grants(["memory.read"]))
    add_pending(data / "grants.toml", "quiet", ["memory.read"])

    (found,) = problems(root, data)

    assert (found["extension"], found["path"]) == ("quiet", str(data / "grants.toml"))
    assert found["problem"].startswith("revocation not persistent: memory.read")
    here("revoke", "quiet", "memory.read", "--data", str(data))
    assert problems(root, data) == []
