"""YAML files: usual ones are read, exotic ones are refused before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.conversion.files.yaml import MAX_DEPTH, MAX_VALUES, load_yaml, parse_yaml
from becket.errors import BadFile


def test_usual_files_are_read() -> None:
    text = b"""
    # search here
    extensions:
      enabled: true
      search_paths: [./extensions, "/opt/more"]
      depth: 3
      share: 0.5
      nothing: ~
      entries: {weather: {grants: []}}
    """

    assert parse_yaml(text, "extensions.yaml") == {
        "extensions": {
            "enabled": True,
            "search_paths": ["./extensions", "/opt/more"],
            "depth": 3,
            "share": 0.5,
            "nothing": None,
            "entries": {"weather": {"grants": []}},
        }
    }


def test_an_empty_file_holds_nothing() -> None:
    assert parse_yaml(b"", "extensions.yaml") is None


def test_a_file_is_read_from_disk_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "extensions.yaml"
    path.write_bytes(b"a: 1\n")

    assert load_yaml(path) == {"a": 1}
    with pytest.raises(BadFile):
        load_yaml(path, limit=4)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"a: [", id="unfinished"),
        pytest.param(b"\xff", id="no UTF-8"),
        pytest.param(b"a: 2020-13-45", id="a date that there cannot be"),
        pytest.param(b"a: " + b"9" * 5_000, id="a number of 5,000 digits"),
        pytest.param(b"{[a]: 1}", id="a list as a key"),
        pytest.param(b"a: \x07", id="a control character"),
    ],
)
def test_invalid_yaml_is_reported(text: bytes) -> None:
    with pytest.raises(BadFile) as caught:
        parse_yaml(text, "extensions.yaml")

    [(pointer, problem)] = caught.value.problems
    assert pointer == ""
    assert problem.startswith("is not YAML")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        pytest.param(b"a: &it [x, x]\nb: [*it, *it]", "name", id="a value with a name"),
        pytest.param(b"a: *it", "repeated", id="a value that is repeated"),
        pytest.param(b"a: !!python/object/apply:os.getpid []", "tag", id="an object of any class"),
        pytest.param(b"a: !!binary eA==", "tag", id="a value with a tag"),
        pytest.param(b"[" * 60_000, f"{MAX_DEPTH} levels", id="brackets"),
        pytest.param(b"- " * 30_000, f"{MAX_DEPTH} levels", id="dashes"),
        pytest.param(b"[" + b"a," * (MAX_VALUES + 1) + b"]", f"{MAX_VALUES} values", id="many values"),
        pytest.param(b"--- a\n--- b\n", "second document", id="two documents"),
    ],
)
def test_exotic_yaml_is_refused_with_its_line(text: bytes, word: str) -> None:
    with pytest.raises(BadFile) as caught:
        parse_yaml(text, "extensions.yaml")

    [(_, problem)] = caught.value.problems
    assert problem.startswith("line ")
    assert word in problem


def test_as_many_levels_as_there_may_be_are_read() -> None:
    assert parse_yaml(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, "deep.yaml") != []


def test_a_duplicate_key_is_reported_wherever_it_is() -> None:
    with pytest.raises(BadFile) as caught:
        parse_yaml(b"a: 1\nb: [{c: 1, c: 2}]\na: 2\n", "extensions.yaml")

    assert {pointer for pointer, _ in caught.value.problems} == {"/a", "/b/0/c"}


def test_values_that_json_does_not_have_are_reported_together() -> None:
    with pytest.raises(BadFile) as caught:
        parse_yaml(b"a: 2020-01-01\nb: [.inf]\n1: x\nd: 99999999999999999999\n", "extensions.yaml")

    assert {pointer for pointer, _ in caught.value.problems} == {"", "/a", "/b/0", "/d"}
