"""Grants are read whole or not at all, changed under a lock, and comments are preserved."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from tests.contract.sample_files import load_samples

from becket.errors import BadFile, Problem
from becket.host.starting import grants_file
from becket.host.starting.grants_file import GrantEntry, edit_grants, load_grants, rewrite_grants
from becket.host.starting.pending_revocations import add_pending, load_pending
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS

DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
TEXT = f"""\
# Who may do what.

[notes]  # mine
allow = [
    "memory.read",  # it looks things up
    "memory.write",
]
deny = ["tools.intercept"]  # not that
digest = "{DIGEST}"

# The old one.
["acme.notes-2"]
allow = []
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "grants.toml").write_text(TEXT, encoding="utf-8")
    return tmp_path / "grants.toml"


def problems_of(path: Path, text: str) -> list[Problem]:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadFile) as caught:
        load_grants(path)
    assert caught.value.path == str(path)
    return list(caught.value.problems)


# -- reading


def test_entries_are_read(path: Path) -> None:
    entries = load_grants(path)

    assert entries == {
        "notes": GrantEntry(("memory.read", "memory.write"), ("tools.intercept",), DIGEST),
        "acme.notes-2": GrantEntry(),
    }
    assert entries["notes"].grants == Grants.of(["memory.read", "memory.write"], ["tools.intercept"])


def test_without_a_file_there_are_no_grants(tmp_path: Path) -> None:
    assert load_grants(tmp_path / "grants.toml") == {}


def test_all_problems_are_reported_together(path: Path) -> None:
    assert problems_of(path, "[Notes]\n[a]\nallow = 'memory.read'\n[b]\ndenny = []\ndigest = 'x'") == [
        ("/Notes", "is no id: 1 to 64 of `a-z 0-9 . _ -`, the first a letter or digit, no two dots together"),
        ("/a/allow", "expected `array`, got `str`"),
        ("/b/digest", "expected `str` matching regex '^[0-9a-f]{64}$'"),
        ("/b/denny", "is unknown"),
    ]


def test_permissions_that_cannot_be_granted_are_problems(path: Path) -> None:
    assert problems_of(path, "[a]\nallow = ['memory.forget', '*']\ndeny = ['tools.override']") == [
        ("/a/allow/0", "Unknown extension permission: memory.forget"),
        ("/a/allow/1", "Unknown extension permission: *"),
        ("/a/deny/0", "Reserved extension permission is not implemented yet: tools.override"),
    ]


def test_a_host_may_define_permissions_of_its_own(path: Path) -> None:
    path.write_text("[a]\nallow = ['acme.fly']", encoding="utf-8")

    assert load_grants(path, known=PERMISSIONS | {"acme.fly"})["a"].allow == ("acme.fly",)


def test_a_file_that_cannot_be_read_is_not_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "grants.toml").mkdir()

    with pytest.raises(BadFile):
        load_grants(tmp_path / "grants.toml")
    assert problems_of(tmp_path / "other.toml", "[")[0][1].startswith("is not TOML")


def reads(value: Any, path: Path) -> bool:
    if not isinstance(value, dict):
        return False
    text = "".join(f"[{msgspec.json.encode(id).decode()}]\n{members_text(table)}\n" for id, table in value.items())
    path.write_text(text, encoding="utf-8")
    try:
        load_grants(path)
    except BadFile:
        return False
    return True


def members_text(table: Any) -> str:
    if not isinstance(table, dict):
        return "="  # cannot be written as a table
    return "\n".join(f"{key} = {msgspec.json.encode(value).decode()}" for key, value in table.items())


def test_good_samples_of_the_schema_are_read_and_bad_ones_refused(tmp_path: Path) -> None:
    samples = [sample for sample in load_samples() if (sample.schema, sample.definition) == ("host-config", "grants")]

    assert samples
    assert [sample.value for sample in samples if reads(sample.value, tmp_path / "x") != sample.is_good] == []


# -- entries


def test_a_granted_permission_is_no_longer_denied_and_vice_versa() -> None:
    entry = GrantEntry(("memory.read",), ("memory.write",), "")

    assert entry.with_grants(["memory.write"], DIGEST) == GrantEntry(("memory.read", "memory.write"), (), DIGEST)
    assert entry.with_grants([]) == entry
    assert entry.with_denials(["memory.read"]) == GrantEntry((), ("memory.read", "memory.write"))


# -- changing


def test_a_change_is_stored_and_returned(path: Path) -> None:
    changed = edit_grants(path, "notes", lambda entry: entry.with_denials(["memory.write"]))

    assert changed == load_grants(path)["notes"]
    assert changed == GrantEntry(("memory.read",), ("memory.write", "tools.intercept"), DIGEST)


def test_the_first_grant_makes_the_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "grants.toml"

    edit_grants(path, "notes", lambda entry: entry.with_grants(["memory.read"]))

    assert path.read_text(encoding="utf-8") == '[notes]\nallow = ["memory.read"]\n'
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_no_change_writes_nothing(path: Path) -> None:
    before = path.stat().st_ino

    assert edit_grants(path, "notes", lambda entry: entry) is not None
    assert edit_grants(path, "none", lambda entry: None) is None
    assert path.stat().st_ino == before


def test_an_entry_can_be_removed(path: Path) -> None:
    assert edit_grants(path, "notes", lambda entry: None) is None

    assert list(load_grants(path)) == ["acme.notes-2"]
    assert path.read_text(encoding="utf-8") == (
        '# Who may do what.\n\n\n# The old one.\n["acme.notes-2"]\nallow = []\n'
    )


def test_a_link_to_the_file_stays_one(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.toml").symlink_to("grants.toml")

    edit_grants(tmp_path / "link.toml", "new", lambda entry: entry.with_grants(["memory.read"]))

    assert (tmp_path / "link.toml").is_symlink()
    assert "new" in load_grants(path)


def test_a_file_with_mistakes_is_not_changed(path: Path) -> None:
    path.write_text("[notes]\nallow = ['nonsense']\n", encoding="utf-8")

    with pytest.raises(BadFile):
        edit_grants(path, "notes", lambda entry: entry.with_grants(["memory.read"]))
    assert path.read_text(encoding="utf-8") == "[notes]\nallow = ['nonsense']\n"


def test_a_value_that_could_not_be_read_again_is_not_written(path: Path) -> None:
    for extension, permission in [("notes", "memory.forget"), ("No tes", "memory.read")]:
        with pytest.raises(BadFile):
            edit_grants(path, extension, lambda entry, name=permission: entry.with_grants([name]))  # type: ignore[misc]
    assert path.read_text(encoding="utf-8") == TEXT


def test_a_file_that_would_become_too_large_to_be_read_is_not_written(path: Path) -> None:
    path.write_text(TEXT + "#" * (65_530 - len(TEXT)), encoding="utf-8")

    with pytest.raises(BadFile) as caught:
        edit_grants(path, "more", lambda entry: entry.with_grants(["memory.read"]))
    assert "larger" in caught.value.problems[0][1]
    assert "more" not in load_grants(path)


def test_a_failure_on_disk_leaves_the_old_file_and_no_other(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(grants_file.os, "replace", fail)
    with pytest.raises(BadFile) as caught:
        edit_grants(path, "notes", lambda entry: entry.with_grants(["audio.input"]))

    problem = "cannot be written: the disk is full (No space left on device): free space on it"
    assert caught.value.problems == (("", problem),)
    assert path.read_text(encoding="utf-8") == TEXT
    assert sorted(file.name for file in path.parent.iterdir()) == ["grants.toml", "grants.toml.lock"]


def test_a_change_is_synced_before_it_replaces_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_sync(descriptor: int) -> None:
        steps.append("folder synced" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file synced")
        fsync(descriptor)

    def note_replace(new: str, old: str) -> None:
        steps.append("replaced")
        replace(new, old)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)

    edit_grants(path, "notes", lambda entry: entry.with_grants(["audio.input"]))

    assert steps == ["file synced", "replaced", "folder synced"]


def test_a_revocation_that_is_pending_counts_and_is_written_with_the_next_change(path: Path) -> None:
    edit_grants(path, "notes", lambda _: GrantEntry(("memory.read", "memory.write")))
    add_pending(path, "notes", ["memory.write"])
    add_pending(path, "notes", ["memory.read"])
    add_pending(path, "other", ["memory.read"])

    assert load_grants(path)["notes"] == GrantEntry((), ("memory.read", "memory.write"))
    assert load_grants(path)["other"] == GrantEntry((), ("memory.read",))

    edit_grants(path, "notes", lambda entry: entry.with_grants(["memory.read"]))
    assert load_pending(path) == {"other": ("memory.read",)}
    assert load_grants(path)["notes"] == GrantEntry(("memory.read",), ("memory.write",))

    edit_grants(path, "other", lambda entry: entry)
    assert load_pending(path) == {}
    assert not path.with_name("grants.toml.pending").exists()
    assert load_grants(path)["other"] == GrantEntry((), ("memory.read",))


@pytest.mark.parametrize("data", [b'{"notes": 5}', b"{", b'{"notes":["\xff"]}', b"[" * 100_000])
def test_pending_revocations_that_cannot_be_read_are_not_ignored(path: Path, data: bytes) -> None:
    path.with_name("grants.toml.pending").write_bytes(data)

    with pytest.raises(BadFile) as caught:
        load_grants(path)

    assert caught.value.path.endswith("grants.toml.pending")


def test_concurrent_changes_are_all_stored(tmp_path: Path) -> None:
    path = tmp_path / "grants.toml"
    names = sorted(PERMISSIONS)

    def grant(name: str) -> None:
        edit_grants(path, "notes", lambda entry: entry.with_grants([name]))
        edit_grants(path, name.replace("_", "-"), lambda entry: entry.with_grants([name]))

    threads = [threading.Thread(target=grant, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    entries = load_grants(path)
    assert entries["notes"].allow == tuple(names)
    assert len(entries) == len(names) + 1


def test_the_wait_for_a_lock_that_another_program_holds_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants_file, "LOCK_TIMEOUT", 0.03)
    holder = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(BadFile) as caught:
            edit_grants(path, "notes", lambda entry: entry.with_grants(["audio.input"]))
    finally:
        os.close(holder)

    assert caught.value.problems == (("", "another program is changing it"),)
    assert edit_grants(path, "notes", lambda entry: entry.with_grants(["audio.input"])) is not None


# -- comments and layout


def test_comments_stay_where_they_are() -> None:
    entry = GrantEntry(("memory.read", "memory.write"), (), "0" * 64)

    assert (
        rewrite_grants(TEXT, "notes", entry)
        == f"""\
# Who may do what.

[notes]  # mine
allow = [
    "memory.read",  # it looks things up
    "memory.write",
]
digest = "{"0" * 64}"

# The old one.
["acme.notes-2"]
allow = []
"""
    )


def test_a_changed_line_preserves_its_indent_and_the_comment_behind_it() -> None:
    text = '[a]\n  deny = ["memory.read"]  # never\n# end'

    assert (
        rewrite_grants(text, "a", GrantEntry((), ("memory.write",)))
        == '[a]\n  deny = ["memory.write"]  # never\n# end\n'
    )


def test_new_keys_come_after_existing_ones() -> None:
    text = "[a]\n# nothing yet\n\n[b]\n"

    assert (
        rewrite_grants(text, "a", GrantEntry(("memory.read",)))
        == '[a]\nallow = ["memory.read"]\n# nothing yet\n\n[b]\n'
    )


def test_a_new_extension_is_added_at_the_end() -> None:
    assert (
        rewrite_grants("# mine", "a.b", GrantEntry(("memory.read",))) == '# mine\n\n["a.b"]\nallow = ["memory.read"]\n'
    )
    assert rewrite_grants("", "a", GrantEntry()) == "[a]\n"


def test_a_missing_entry_cannot_be_removed() -> None:
    assert rewrite_grants(TEXT, "none", None) == TEXT


def test_many_permissions_stand_one_below_the_other() -> None:
    text = rewrite_grants("", "a", GrantEntry(tuple(sorted(PERMISSIONS))))

    assert text.startswith('[a]\nallow = [\n    "audio.input",\n')
    assert max(map(len, text.splitlines())) < 100


@pytest.mark.parametrize(
    "text",
    [
        "notes = { allow = ['memory.read'] }\n",
        "notes.allow = ['memory.read']\n# gone\n",
        "[notes]\n'allow' = ['memory.read']\n",
        "[ 'notes' ]\nallow = ['memory.read']",
    ],
)
def test_a_change_has_the_same_effect_in_every_layout_of_the_file(text: str) -> None:
    after = rewrite_grants(text, "notes", GrantEntry(("audio.input",), ("memory.read",)))

    assert re.sub(r"\s", "", after.replace("'", '"')).endswith('allow=["audio.input"]deny=["memory.read"]')
    assert rewrite_grants(text, "notes", None).strip() == ""


NAMES = st.lists(st.sampled_from(sorted(PERMISSIONS)), max_size=5, unique=True).map(tuple)
ENTRIES = st.builds(GrantEntry, NAMES, NAMES, st.sampled_from(["", DIGEST]))
IDS = st.sampled_from(["notes", "a.b", "acme-notes_2", "0"])
COMMENTS = st.sampled_from(["", '# a [comment] with "quotes" and = signs\n', "\n\n", "#'''\n"])


@given(st.lists(st.tuples(IDS, ENTRIES, COMMENTS), max_size=5), IDS, st.none() | ENTRIES)
def test_a_change_leaves_the_rest_of_the_file_unchanged(
    made: list[tuple[str, GrantEntry, str]], extension: str, entry: GrantEntry | None
) -> None:
    text = ""
    expected: dict[str, GrantEntry] = {}
    for id, one, comment in made:
        text = rewrite_grants(text, id, one) + comment
        expected[id] = one
    after = rewrite_grants(text, extension, entry)

    expected.pop(extension, None)
    if entry is not None:
        expected[extension] = entry
    assert msgspec.toml.decode(after, type=dict[str, GrantEntry]) == expected
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        line for line in after.splitlines() if line.startswith("#")
    ]
