"""The extensions of a `morphir.toml`, and which of them can run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from becket.adapters.morphir import MorphirPermissions, MorphirSettings
from becket.adapters.morphir.manifest_reader import READER, parse_duration, parse_size
from becket.errors import ManifestError
from becket.host.restart import RestartStrategy
from becket.host.starting.discovery import discover_extensions
from becket.host.starting.manifest import RestartOverrides
from becket.host.starting.manifest_reader import ExtensionList, ScopedFiles

PROCESS = 'source = { type = "process", command = "python3", args = ["./v.py"] }\n'


def read(text: str, folder: str = "/project") -> ExtensionList:
    path = os.path.join(folder, "morphir.toml")
    return READER.read_list(text.encode(), path, ScopedFiles(folder, folder))


def entry(text: str) -> str:
    return f"[[extensions]]\n{text}\n"


# -- what is read


def test_every_member_of_an_entry_is_read() -> None:
    listing = read(
        """
        name = "my-project"        # what else stands in the file does not matter

        [[extensions]]
        name = "python-validator"
        enabled = true
        protocol = "stdio"

        [extensions.source]
        type = "process"
        command = "python3"
        args = ["./extensions/validator.py", "--fast"]
        env = { STYLE = "dense" }

        [extensions.permissions]
        network = true
        filesystem = ["./out"]
        max_memory = "100MB"
        max_execution_time = "30s"

        [extensions.restart]
        strategy = "exponential"
        initial_delay = "1s"
        max_delay = "30s"
        max_retries = 3

        [extensions.config]
        depth = 2
        rules = { names = ["upper"] }
        """
    )

    (found,) = listing.extensions
    assert listing.problems == ()
    manifest = found.manifest
    assert (manifest.id, manifest.name, manifest.dialect) == ("python-validator", "python-validator", "morphir")
    assert manifest.command == ("python3", "./extensions/validator.py", "--fast")
    assert manifest.environment.set == {"STYLE": "dense"}
    assert manifest.permissions == ("tools.register",)
    assert manifest.restart == RestartOverrides(
        strategy=RestartStrategy.EXPONENTIAL, most=3, window=86_400.0, delay=1.0, longest_delay=30.0
    )
    assert found.extra == MorphirSettings(
        config={"depth": 2, "rules": {"names": ["upper"]}},
        permissions=MorphirPermissions(
            network=True, filesystem=("./out",), max_memory=100_000_000, max_execution_time=30.0
        ),
    )
    assert found.cwd == "/project"


def test_a_short_entry_is_never_restarted() -> None:
    (found,) = read(entry('name = "v"\n' + PROCESS)).extensions

    assert found.manifest.restart == RestartOverrides(strategy=RestartStrategy.NEVER)
    assert found.extra == MorphirSettings()


def test_an_immediate_restart_has_a_number_alone() -> None:
    restart = 'restart = { strategy = "immediate", max_retries = 0, initial_delay = "0s" }'
    (found,) = read(entry('name = "v"\n' + PROCESS + restart)).extensions

    requested = found.manifest.restart
    assert (requested.strategy, requested.most, requested.delay) == (RestartStrategy.IMMEDIATE, 0, 0.001)


@pytest.mark.parametrize("text", ["", "[workspace]\nmembers = []\n", "extensions = []\n"])
def test_a_file_without_extensions_is_not_a_problem(text: str) -> None:
    assert read(text) == ExtensionList()


@pytest.mark.parametrize(("name", "id"), [("My Validator", "my-validator"), ("x" * 100, "x" * 64)])
def test_a_name_that_is_not_a_valid_id_becomes_one(name: str, id: str) -> None:
    (found,) = read(entry(f'name = "{name}"\n' + PROCESS)).extensions

    assert (found.manifest.id, found.manifest.name) == (id, name[:64])


def test_a_disabled_extension_is_found_and_stays_off() -> None:
    listing = read(entry('name = "v"\nenabled = false\n' + PROCESS))

    assert [found.manifest.id for found in listing.extensions] == ["v"]
    assert listing.disabled == ("v",)


# -- what cannot be run here


@pytest.mark.parametrize("kind", ["http", "grpc", "wasm", "wasmcomponent"])
def test_an_entry_that_is_not_a_process_is_named_and_the_others_are_listed(kind: str) -> None:
    other = f'name = "web"\nsource = {{ type = "{kind}", url = "http://localhost:1" }}\n'
    listing = read(entry(other) + entry('name = "v"\n' + PROCESS))

    assert [found.manifest.id for found in listing.extensions] == ["v"]
    ((pointer, text),) = listing.problems
    assert pointer == "/extensions/0/source/type"
    assert text == f"`web` is not runnable here: its source is `{kind}`, not a process"
    assert READER.hint_for((pointer, text))


def test_a_disabled_entry_that_is_not_a_process_is_not_a_problem() -> None:
    listing = read(entry('name = "web"\nenabled = false\nsource = { type = "http", url = "http://localhost:1" }\n'))

    assert listing == ExtensionList()


def test_a_process_of_another_protocol_is_named() -> None:
    ((pointer, text),) = read(entry('name = "v"\nprotocol = "jsonrpc2"\n' + PROCESS)).problems

    assert pointer == "/extensions/0/protocol"
    assert "protocol is `jsonrpc2`" in text


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        (PROCESS, "/extensions/0"),
        ('name = "v"', "/extensions/0"),
        ('name = 1\nenabled = "yes"\n' + PROCESS, "/extensions/0/name"),
        ('name = "!!"\n' + PROCESS, "/extensions/0/name"),
        ('name = "v"\nsource = { type = "pigeon" }', "/extensions/0/source/type"),
        ('name = "v"\nsource = { type = "process" }', "/extensions/0/source/command"),
        ('name = "v"\nsource = { type = "process", command = "a\\u0000" }', "/extensions/0/source/command"),
        (
            'name = "v"\nsource = { type = "process", command = "a", args = ["b", "\\u0000"] }',
            "/extensions/0/source/args/1",
        ),
        ('name = "v"\nsource = { type = "process", command = "a", env = { "A=B" = "c" } }', "/extensions/0/source/env"),
        ('name = "v"\npermissions = { max_memory = "much" }\n' + PROCESS, "/extensions/0/permissions/max_memory"),
        (
            'name = "v"\npermissions = { max_execution_time = "long" }\n' + PROCESS,
            "/extensions/0/permissions/max_execution_time",
        ),
        ('name = "v"\nrestart = { strategy = "often" }\n' + PROCESS, "/extensions/0/restart/strategy"),
        (
            'name = "v"\nrestart = { strategy = "exponential", initial_delay = "soon" }\n' + PROCESS,
            "/extensions/0/restart/initial_delay",
        ),
        (
            'name = "v"\nrestart = { strategy = "immediate", max_retries = -1 }\n' + PROCESS,
            "/extensions/0/restart/max_retries",
        ),
        ('name = "v"\nconfig = 3\n' + PROCESS, "/extensions/0/config"),
    ],
)
def test_problems_of_an_entry_are_reported_with_their_pointer(text: str, pointer: str) -> None:
    listing = read(entry(text))

    assert listing.extensions == ()
    assert listing.problems
    assert listing.problems[0][0].startswith(pointer)
    assert READER.hint_for(("/extensions/0/name", "is wrong")) == ""


def test_an_entry_that_is_not_a_table_is_a_problem() -> None:
    assert read("extensions = [1]").problems[0][0] == "/extensions/0"


@pytest.mark.parametrize("text", ["extensions = 3", "[extensions]\na = 1", "extensions = [", "\udcff"])
def test_an_invalid_file_is_refused_as_a_whole(text: str) -> None:
    with pytest.raises(ManifestError):
        READER.read_list(text.encode(errors="surrogateescape"), "/p/morphir.toml", ScopedFiles("/p", "/p"))


# -- durations and sizes


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("30s", 30.0), ("500ms", 0.5), ("1m 30s", 90.0), ("1.5h", 5400.0), ("2d", 172_800.0), ("10", 10.0), (7, 7.0)],
)
def test_a_duration_is_parsed_to_seconds(given: Any, seconds: float) -> None:
    assert parse_duration(given) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("given", "size"),
    [("100MB", 100_000_000), ("1GiB", 1 << 30), ("64k", 64_000), ("512 KiB", 1 << 19), ("10B", 10), (4096, 4096)],
)
def test_a_size_is_parsed_to_bytes(given: Any, size: int) -> None:
    assert parse_size(given) == size


@pytest.mark.parametrize("given", ["", "s", "30 parsecs", "-1s", "1s,", "1" * 65, "1e9s", -5])
def test_any_other_value_is_refused(given: Any) -> None:
    for parse in (parse_duration, parse_size):
        with pytest.raises(ValueError):
            parse(given)


# -- found on disk


def test_a_project_is_found_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "v.py").touch()
    (tmp_path / "morphir.toml").write_text(entry('name = "v"\n' + PROCESS), encoding="utf-8")

    report = discover_extensions([tmp_path], readers=[READER])

    (candidate,) = report.candidates
    assert (candidate.id, candidate.cwd) == ("v", str(tmp_path))
    assert candidate.files == (str(tmp_path / "v.py"),)
