"""`.mcp.json` and the servers of manifests: which entries become extensions, and the problems of the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from becket.adapters.mcp.manifest_reader import READER
from becket.errors import ManifestError
from becket.host.starting.bundles import add_bundled
from becket.host.starting.candidate import Candidate
from becket.host.starting.discovery import discover_extensions
from becket.host.starting.manifest import Manifest
from becket.host.starting.manifest_reader import ExtensionList, ScopedFiles


def listed(file: Any, folder: Path) -> ExtensionList:
    data = file if isinstance(file, bytes) else json.dumps(file).encode()
    return READER.read_list(data, str(folder / ".mcp.json"), ScopedFiles(str(folder), str(folder)))


def server(entry: Any, folder: Path, name: str = "files") -> tuple[list[Manifest], list[str]]:
    listing = listed({"mcpServers": {name: entry}}, folder)
    return [found.manifest for found in listing.extensions], [pointer for pointer, _ in listing.problems]


@pytest.mark.parametrize("member", ["mcpServers", "mcp_servers"])
def test_a_server_becomes_an_extension_from_either_file_format(member: str, tmp_path: Path) -> None:
    entry = {"command": "npx", "args": ["-y", "server"], "env": {"A": "1"}, "type": "stdio", "autoApprove": []}
    (found,) = listed({member: {"Files": entry}}, tmp_path).extensions
    manifest = found.manifest

    assert (manifest.id, manifest.name, manifest.dialect) == ("files", "Files", "mcp")
    assert manifest.command == ("npx", "-y", "server")
    assert manifest.environment.set == {"A": "1"}
    assert manifest.permissions == ("tools.register",)


def test_a_server_may_request_more_permissions_than_for_its_tools(tmp_path: Path) -> None:
    requested = ["tools.register", "session.drive"]
    (manifest,), _ = server({"command": "a", "permissions": requested}, tmp_path)

    assert manifest.permissions == tuple(requested)


def test_every_server_requests_a_permission_so_that_consent_is_needed(tmp_path: Path) -> None:
    (manifest,), _ = server({"command": "sh", "args": ["-c", "echo"], "permissions": []}, tmp_path)

    assert manifest.permissions == ("tools.register",)


def test_a_variable_of_the_host_is_passed_on_under_its_own_name(tmp_path: Path) -> None:
    (manifest,), _ = server({"command": "a", "env": {"API_KEY": "${API_KEY}", "B": "plain"}}, tmp_path)

    assert (manifest.environment.passed, manifest.environment.set) == (("API_KEY",), {"B": "plain"})


def test_a_server_that_is_turned_off_is_known_and_disabled(tmp_path: Path) -> None:
    listing = listed({"mcpServers": {"a": {"command": "a", "disabled": True}}}, tmp_path)

    assert listing.disabled == ("a",)


def test_a_folder_to_work_in_is_the_folder_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (found,) = listed({"mcpServers": {"a": {"command": "a", "cwd": "inner"}}}, tmp_path).extensions

    assert found.folder == str(tmp_path / "inner")


def test_only_the_files_that_its_command_names_count_for_the_consent_to_a_server(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("server.py", "notes.sqlite"):
        (tmp_path / "inner" / name).touch()
    server = {"command": "python3", "args": ["server.py"], "cwd": "inner"}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": server}}), encoding="utf-8")

    [found] = discover_extensions([tmp_path]).candidates

    assert found.files == (str(tmp_path / "inner" / "server.py"),)


@pytest.mark.parametrize(
    ("entry", "pointers"),
    [
        ({"url": "https://example.org/mcp", "type": "http"}, ["/mcpServers/files"]),
        ({"type": "sse", "command": "a"}, ["/mcpServers/files"]),
        ({}, ["/mcpServers/files/command"]),
        ({"command": ""}, ["/mcpServers/files/command"]),
        ({"command": 5, "args": [5]}, ["/mcpServers/files/args/0", "/mcpServers/files/command"]),
        ({"command": "a\0b"}, ["/mcpServers/files/command"]),
        ({"command": "a", "env": {"A": 1}}, ["/mcpServers/files/env/A"]),
        ({"command": "${HOME}/a", "args": ["${PWD}"]}, ["/mcpServers/files/args/0", "/mcpServers/files/command"]),
        ({"command": "a", "env": {"A": "${B}", "C": "x${C}"}}, ["/mcpServers/files/env/A", "/mcpServers/files/env/C"]),
        ({"command": "a", "env": {"A": "${A:-x}", "B": "${input:b}"}}, [f"/mcpServers/files/env/{n}" for n in "AB"]),
        ({"command": "a", "cwd": "../out"}, ["/mcpServers/files/cwd"]),
        ({"command": "a", "permissions": ["Nonsense"]}, ["/mcpServers/files/permissions/0"]),
        ("npx", ["/mcpServers/files"]),
    ],
)
def test_a_server_that_cannot_be_used_is_a_problem(entry: Any, pointers: list[str], tmp_path: Path) -> None:
    manifests, found = server(entry, tmp_path)

    assert (manifests, sorted(found)) == ([], pointers)


def test_one_bad_server_does_not_affect_the_others_and_its_problem_has_a_hint(tmp_path: Path) -> None:
    listing = listed({"mcpServers": {"far": {"url": "https://a"}, "near": {"command": "a"}}}, tmp_path)

    assert [found.manifest.id for found in listing.extensions] == ["near"]
    assert "stdin" in READER.hint_for(listing.problems[0])
    assert READER.hint_for(("/a", "is missing")) == ""


def test_names_that_map_to_the_same_id_or_to_none_are_problems(tmp_path: Path) -> None:
    listing = listed(
        {"mcpServers": {"A b": {"command": "a"}, "a-b": {"command": "b"}, "..": {"command": "c"}}}, tmp_path
    )

    assert [found.manifest.id for found in listing.extensions] == ["a-b"]
    assert [pointer for pointer, _ in listing.problems] == ["/mcpServers/a-b", "/mcpServers/.."]


def test_a_file_without_servers_lists_none(tmp_path: Path) -> None:
    assert listed({"other": 1}, tmp_path) == ExtensionList()
    assert [at for at, _ in listed({"mcpServers": []}, tmp_path).problems] == ["/mcpServers"]


@pytest.mark.parametrize("data", [b"{", b"[]", b'"\xff"', b"[" * 3000])
def test_a_file_that_is_not_an_object_cannot_be_used(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ManifestError):
        listed(data, tmp_path)


def test_a_search_finds_the_servers_of_a_folder(tmp_path: Path) -> None:
    file = {"mcpServers": {"files": {"command": "a"}, "off": {"command": "a", "disabled": True}, "far": {"url": "x"}}}
    (tmp_path / ".mcp.json").write_text(json.dumps(file), encoding="utf-8")
    report = discover_extensions([tmp_path])

    assert [candidate.id for candidate in report.candidates] == ["files"]
    assert (report.disabled, report.invalid) == (1, 1)


def adopted(servers: Any, tmp_path: Path) -> tuple[list[Candidate], list[str]]:
    manifest = Manifest(id="notes", version="1.0.0", command=("a",), mcp_servers=servers)
    notes: list[Any] = []
    owner = Candidate(manifest, str(tmp_path), str(tmp_path / "becket.toml"), 0)
    return add_bundled([owner], notes), [note.problem for note in notes]


def test_the_servers_of_a_manifest_stand_behind_it_and_start_after_it(tmp_path: Path) -> None:
    (_, found), problems = adopted({"files": {"command": "b"}, "off": {"command": "c", "disabled": True}}, tmp_path)

    assert (found.id, found.manifest.after, found.manifest.dialect) == ("notes.files", ("notes",), "mcp")
    assert (found.folder, found.is_listed, problems) == (str(tmp_path), True, [])


def test_problems_of_the_servers_of_a_manifest_are_reported_and_the_extension_is_listed(tmp_path: Path) -> None:
    candidates, problems = adopted({"files": {"url": "x"}}, tmp_path)

    assert [one.id for one in candidates] == ["notes"]
    assert problems == ["/mcp_servers/files: has a URL, and is not a program that could be started"]
