"""`becket memory`: the records of extensions, listed, searched, shown and forgotten."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.commands import BECKET, here
from tests.cli.terminals import Terminal

from becket.cli.memory import format_time
from becket.contract.memory import Append
from becket.limits import DEFAULT_LIMITS
from becket.stores.sqlite import SqliteStore

NOW_MS = int(datetime.now(UTC).timestamp() * 1000)
HOUR = 3_600_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Returns the folder of a host in which two extensions have stored records."""
    folder = tmp_path / "data"
    folder.mkdir()
    times = iter([NOW_MS - 30 * HOUR, NOW_MS - HOUR, NOW_MS, NOW_MS])
    with SqliteStore(folder / "store.sqlite", DEFAULT_LIMITS, lambda: next(times)) as store:
        store.append(Append("notes", "buy milk", ("shop", "food")))
        store.append(Append("notes", "call \x1b[31mMum\nabout Sunday", (), {"phone": 5}))
        store.append(Append("notes", "Milk the cow, then milk the goat " + "and so on " * 20))
        store.append(Append("dice", "1d6: 3"))
    return folder


def memory(command: str, *words: str, data: Path, input: str | None = None) -> Result:
    return here("memory", command, "--data", str(data), *words, input=input)


def listed(*words: str, data: Path) -> list[str]:
    """Returns the ids of what is listed."""
    done = memory("list", *words, data=data)
    assert done.exit_code == 0
    return [line.split()[0] for line in done.stdout.splitlines()[1:]]


def test_without_an_extension_it_lists_the_number_of_records_of_each(data: Path) -> None:
    done = memory("list", data=data)

    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["EXTENSION", "RECORDS"],
        ["dice", "1"],
        ["notes", "3"],
    ]


def test_the_records_of_an_extension_are_listed_newest_first_a_line_each(data: Path) -> None:
    lines = memory("list", "notes", data=data).stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["ID", "3", "2", "1"]
    assert lines[1].endswith("...")
    assert lines[2].endswith("call \\x1b[31mMum about Sunday")
    assert "shop food" in lines[3]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["--limit", "2"], ["3", "2"]),
        (["--contains", "MILK"], ["3", "1"]),
        (["--tag", "foo"], ["1"]),
        (["--since", "2h"], ["3", "2"]),
        (["--until", "2h"], ["1"]),
        (["--since", "2d", "--until", "30m"], ["2", "1"]),
        (["--since", (datetime.now() - timedelta(hours=2)).isoformat(timespec="minutes")], ["3", "2"]),
        (["--since", "2001-02-03"], ["3", "2", "1"]),
        (["--contains", "beer"], []),
    ],
)
def test_conditions_narrow_a_list(words: list[str], ids: list[str], data: Path) -> None:
    assert listed("notes", *words, data=data) == ids


def test_a_search_finds_records_with_all_words_the_best_first(data: Path) -> None:
    done = memory("search", "notes", "the", "milk", data=data)

    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == ["3"]


@pytest.mark.parametrize(
    ("words", "contents"),
    [
        (["list", "notes", "--tag", "shop"], ["buy milk"]),
        (["search", "notes", "buy"], ["buy milk"]),
        (["search", "notes", "beer"], []),
    ],
)
def test_for_programs_records_are_json(words: list[str], contents: list[str], data: Path) -> None:
    records = json.loads(memory(*words, "--json", data=data).stdout)

    assert [record["content"] for record in records] == contents


def test_for_programs_the_list_of_extensions_is_json_too(data: Path) -> None:
    shares = json.loads(memory("list", "--json", data=data).stdout)

    assert [(share["extension"], share["records"]) for share in shares] == [("dice", 1), ("notes", 3)]
    assert shares[0]["newest_ms"] == NOW_MS


def test_one_record_is_shown_whole_and_escaped(data: Path) -> None:
    done = memory("show", "notes", "2", data=data)

    assert done.stdout.splitlines() == ["call \\x1b[31mMum", "about Sunday", '{"phone":5}']
    assert json.loads(memory("show", "--json", "notes", "1", data=data).stdout)["tags"] == ["shop", "food"]


@pytest.mark.parametrize("words", [["notes", "99"], ["nobody", "1"]])
def test_a_record_that_is_not_there_is_not_found(words: list[str], data: Path) -> None:
    done = memory("show", *words, data=data)

    assert done.exit_code == 3
    assert done.stderr.startswith("error: ")


def test_while_a_host_runs_records_can_be_read_but_not_changed(data: Path) -> None:
    with SqliteStore(data / "store.sqlite") as store:
        store.append(Append("notes", "just now"))

        assert listed("notes", "--contains", "just", data=data) == ["5"]
        assert memory("search", "notes", "just", data=data).exit_code == 0
        assert "just now" in memory("show", "notes", "5", data=data).stdout
        refused = memory("forget", "--yes", "notes", data=data)

    assert refused.exit_code == 6
    assert "has this store open" in refused.stderr
    assert listed("notes", data=data) == ["5", "3", "2", "1"]


def test_a_forgotten_record_is_gone(data: Path) -> None:
    some = memory("forget", "--yes", "--up-to", "2", "notes", data=data)
    assert (some.exit_code, some.stderr) == (0, "notes: 2 removed\n")
    assert listed("notes", data=data) == ["3"]

    memory("forget", "--yes", "notes", data=data)
    assert listed(data=data) == ["dice"]
    assert memory("forget", "--yes", "notes", data=data).exit_code == 3


def test_without_a_terminal_nothing_is_forgotten_unless_confirmed_by_an_option(data: Path) -> None:
    assert memory("forget", "notes", data=data, input="y\n").exit_code == 2
    assert len(listed("notes", data=data)) == 3


@pytest.fixture
def terminal_prompt(data: Path) -> Iterator[Terminal]:
    with Terminal([*BECKET, "memory", "forget", "--data", str(data), "notes"]) as terminal:
        terminal.expect("Remove all records of notes? [y/N]")
        yield terminal


@pytest.mark.process
@pytest.mark.parametrize(("response", "code", "left"), [("y", 0, []), ("n", 130, ["3", "2", "1"])])
def test_at_a_terminal_the_user_is_prompted(
    terminal_prompt: Terminal, response: str, code: int, left: list[str], data: Path
) -> None:
    terminal_prompt.enter(response)

    assert terminal_prompt.end() == code
    assert listed("notes", data=data) == left


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["list", "--data", "/no/such/folder"], 6),
        (["search", "--data", "/no/such/folder", "notes", "a"], 6),
        (["forget", "--data", "/no/such/folder", "--yes", "notes"], 6),
        (["list", "notes", "--since", "yesterday"], 2),
        (["list", "notes", "--limit", "0"], 2),
        (["search", "notes"], 2),
        (["show", "notes", "first"], 2),
    ],
)
def test_an_impossible_command_is_reported_in_a_line_or_two(words: list[str], code: int) -> None:
    done = here("memory", *words)

    assert done.exit_code == code
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") <= 2


@pytest.mark.parametrize("command", [[], ["list"], ["search"], ["show"], ["forget"], ["verify"]])
def test_help_has_an_example(command: list[str]) -> None:
    assert re.search(r"becket memory (\w+ notes|verify)", here("memory", *command, "--help").stdout)


def test_a_time_outside_the_calendar_is_shown_in_milliseconds() -> None:
    assert format_time(2**62) == f"{2**62} ms"


# -- damage


def damage_a_record(data: Path) -> None:
    with closing(sqlite3.connect(data / "store.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE memory SET content = 'buy silk' WHERE content = 'buy milk'")


def test_an_intact_store_is_verified_while_a_host_runs(data: Path) -> None:
    with SqliteStore(data / "store.sqlite"):
        done = memory("verify", data=data)

    assert (done.exit_code, done.stdout) == (0, "")
    assert "no damage found" in done.stderr


def test_damaged_records_are_listed_and_fail_the_command(data: Path) -> None:
    damage_a_record(data)

    done = memory("verify", data=data)
    assert done.exit_code == 1
    assert "record 1" in done.stdout
    for_programs = memory("verify", "--json", data=data)
    assert for_programs.exit_code == 1
    assert json.loads(for_programs.stdout)[0]["extension"] == "notes"


def test_a_requested_damaged_record_is_named_with_a_hint(data: Path) -> None:
    damage_a_record(data)

    for words in (("list", "notes"), ("show", "notes", "1")):
        done = memory(*words, data=data)
        assert done.exit_code == 6
        assert "record 1" in done.stderr
        assert "becket memory verify" in done.stderr
    assert memory("show", "notes", "2", data=data).exit_code == 0


def test_losses_are_reported_until_they_are_accepted(data: Path) -> None:
    os.unlink(data / "store.sqlite")
    SqliteStore(data / "store.sqlite").close()

    assert "records 1 to 4" in memory("verify", data=data).stdout
    assert memory("verify", "--accept", data=data).exit_code == 0
    assert memory("verify", data=data).exit_code == 0
