"""`becket config`: the stored values of extensions, listed, read and changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.commands import here, write_extension

from becket.contract.config import ConfigSet
from becket.host.starting.secrets import Secrets
from becket.stores.sqlite import SqliteStore


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Returns the folder of a host in which two extensions have values."""
    folder = tmp_path / "data"
    folder.mkdir()
    with SqliteStore(folder / "store.sqlite") as store:
        store.set_config("eliza", ConfigSet("pace", "0.5"))
        store.set_config("eliza", ConfigSet("mood", "calm\x1b[31m\nand kind"))
        store.set_config("notes", ConfigSet("colour", "red"))
    return folder


def config(command: str, *words: str, data: Path) -> Result:
    return here("config", command, "--data", str(data), *words)


def value_of(key: str, data: Path, extension: str = "eliza") -> str | None:
    with SqliteStore(data / "store.sqlite", read_only=True) as store:
        return store.get_config(extension, key).value


def test_all_values_are_listed(data: Path) -> None:
    lines = config("list", data=data).stdout.splitlines()

    assert [line.split()[:2] for line in lines] == [
        ["EXTENSION", "KEY"],
        ["eliza", "mood"],
        ["eliza", "pace"],
        ["notes", "colour"],
    ]
    assert lines[1].endswith("calm\\x1b[31m\\nand kind")


def test_the_values_of_one_extension_are_listed_for_programs_too(data: Path) -> None:
    assert json.loads(config("list", "notes", "--json", data=data).stdout) == {"notes": {"colour": "red"}}
    assert json.loads(config("list", "nobody", "--json", data=data).stdout) == {}


def test_a_value_is_read(data: Path) -> None:
    assert config("get", "eliza", "pace", data=data).stdout == "0.5\n"
    assert config("get", "eliza", "mood", data=data).stdout == "calm\\x1b[31m\nand kind\n"
    assert json.loads(config("get", "--json", "eliza", "pace", data=data).stdout) == {"value": "0.5", "revision": 1}


@pytest.mark.parametrize("words", [["eliza", "colour"], ["nobody", "pace"]])
def test_a_value_that_is_not_there_is_not_found(words: list[str], data: Path) -> None:
    done = config("get", *words, data=data)

    assert done.exit_code == 3
    assert done.stderr.startswith("error: ")


def test_a_value_is_set_and_removed_again(data: Path) -> None:
    done = config("set", "eliza", "pace", "0", data=data)
    assert (done.exit_code, done.stderr) == (0, "eliza: `pace` is `0`, revision 4\n")
    assert value_of("pace", data) == "0"

    assert config("unset", "eliza", "pace", data=data).exit_code == 0
    assert value_of("pace", data) is None


def test_a_host_that_has_not_run_yet_can_be_configured(tmp_path: Path) -> None:
    new = tmp_path / "new"

    assert config("set", "eliza", "pace", "0", data=new).exit_code == 0
    assert value_of("pace", new) == "0"


@pytest.mark.parametrize(("revision", "code"), [("1", 0), ("0", 1), ("7", 1)])
def test_a_value_that_another_process_has_changed_is_left_alone(revision: str, code: int, data: Path) -> None:
    assert config("set", "--if-revision", revision, "eliza", "pace", "9", data=data).exit_code == code
    assert value_of("pace", data) == ("9" if code == 0 else "0.5")


def test_a_removal_may_depend_on_the_revision_too(data: Path) -> None:
    done = config("unset", "--if-revision", "3", "eliza", "pace", data=data)

    assert done.exit_code == 1
    assert "revision 1" in done.stderr
    assert value_of("pace", data) == "0.5"


def test_while_a_host_runs_values_can_be_read_but_not_changed(data: Path) -> None:
    with SqliteStore(data / "store.sqlite") as store:
        store.set_config("eliza", ConfigSet("pace", "7"))

        assert config("get", "eliza", "pace", data=data).stdout == "7\n"
        assert "colour" in config("list", data=data).stdout
        for words in (["set", "eliza", "pace", "8"], ["unset", "eliza", "pace"]):
            assert config(*words, data=data).exit_code == 6

    assert value_of("pace", data) == "7"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["get", "--data", "/no/such/folder", "eliza", "pace"], 6),
        (["unset", "--data", "/no/such/folder", "eliza", "pace"], 6),
        (["list", "--data", "/no/such/folder"], 6),
        (["set", "--data", "DATA", "eliza", "no.dots", "1"], 1),
        (["set", "eliza", "pace"], 2),
        (["set", "--if-revision", "x", "eliza", "pace", "1"], 2),
    ],
)
def test_an_impossible_change_is_reported_in_a_line_or_two(words: list[str], code: int, data: Path) -> None:
    done = here("config", *[str(data) if word == "DATA" else word for word in words])

    assert done.exit_code == code
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") <= 2


@pytest.mark.parametrize("command", [[], ["list"], ["get"], ["set"], ["unset"]])
def test_help_has_an_example(command: list[str]) -> None:
    assert f"becket config {' '.join(command)}" in here("config", *command, "--help").stdout


# -- secrets


@pytest.fixture
def secretive(data: Path) -> Path:
    """Returns the folder of a host that has seen a manifest with a secret."""
    Secrets(data / "secrets.json").declare("eliza", ["token"])
    return data


def test_a_secret_is_set_and_removed_and_never_shown(secretive: Path) -> None:
    done = config("set", "eliza", "token", "c4n4ry", data=secretive)
    assert (done.exit_code, done.stderr) == (0, "eliza: `token` is `***`, revision 4\n")
    assert Secrets(secretive / "secrets.json").values_of("eliza") == {"token": "c4n4ry"}

    for words in (["list"], ["list", "--json"], ["get", "eliza", "token"], ["get", "--json", "eliza", "token"]):
        shown = config(*words, data=secretive)
        assert shown.exit_code == 0
        assert "c4n4ry" not in shown.output
        assert "***" in shown.output
    assert config("unset", "eliza", "token", data=secretive).exit_code == 0
    assert Secrets(secretive / "secrets.json").values_of("eliza") == {}
    assert value_of("token", secretive) is None


def test_a_secret_that_an_older_store_holds_is_not_shown(secretive: Path) -> None:
    with SqliteStore(secretive / "store.sqlite") as store:
        store.set_config("eliza", ConfigSet("token", "c4n4ry"))

    for words in (["list"], ["list", "--json"], ["get", "eliza", "token"], ["get", "--json", "eliza", "token"]):
        assert "c4n4ry" not in config(*words, data=secretive).output


def test_a_value_can_be_set_as_secret_before_any_host_has_read_its_manifest(tmp_path: Path) -> None:
    done = here("config", "set", "--data", str(tmp_path), "--secret", "notes", "token", "-", input="c4n4ry\n")

    assert done.exit_code == 0
    assert "c4n4ry" not in done.output
    assert Secrets(tmp_path / "secrets.json").values_of("notes") == {"token": "c4n4ry"}
    assert value_of("token", tmp_path, "notes") == "***"


def test_the_manifests_of_a_configuration_define_which_keys_are_secret(tmp_path: Path) -> None:
    write_extension(tmp_path / "root", "notes", "", config={})
    manifest = tmp_path / "root" / "notes" / "becket.toml"
    text = manifest.read_text(encoding="utf-8").replace("config = {}\n", "")
    manifest.write_text(f'{text}[config.token]\ntype = "string"\nsecret = true\n', encoding="utf-8")
    host = tmp_path / "host.toml"
    host.write_text('roots = ["root"]\ndata = "data"\n', encoding="utf-8")

    done = here("config", "set", "--config", str(host), "notes", "token", "c4n4ry")

    assert (done.exit_code, "c4n4ry" in done.output) == (0, False)
    assert value_of("token", tmp_path / "data", "notes") == "***"
    assert Secrets(tmp_path / "data" / "secrets.json").values_of("notes") == {"token": "c4n4ry"}
