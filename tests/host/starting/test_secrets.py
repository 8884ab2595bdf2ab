"""Secrets of the configuration: in a file that only the user can read, never in the store."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import anyio
import pytest
from tests.host.folders import write_extension

from becket.contract.config import ConfigChanged, ConfigSaved, ConfigSet, ConfigValue
from becket.errors import BadFile
from becket.host.host import Host
from becket.host.starting.secrets import SecretConfig, Secrets, move_secrets
from becket.stores.in_memory import InMemoryStore
from becket.stores.sqlite import SqliteStore

CANARY = "c4n4ry-value"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "secrets.json"


def bytes_of(folder: Path) -> bytes:
    """Returns all that the files of a store hold."""
    return b"".join(file.read_bytes() for file in folder.glob("store.sqlite*"))


# -- the file


def test_secrets_are_stored_in_a_file_that_only_the_user_can_read(path: Path) -> None:
    before = os.umask(0)
    try:
        Secrets(path).set("notes", "token", CANARY)
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == 0o600
    assert Secrets(path).values_of("notes") == {"token": CANARY}
    assert CANARY not in repr(Secrets(path))


def test_keys_are_known_as_secret_before_they_have_a_value_and_after(path: Path) -> None:
    secrets = Secrets(path)
    secrets.declare("notes", ["token", "key"])
    secrets.set("notes", "token", CANARY)
    secrets.set("notes", "token", None)

    assert Secrets(path).keys_of("notes") == {"token", "key"}
    assert Secrets(path).values_of("notes") == {}
    assert CANARY not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["{", f'{{"notes": "{CANARY}"}}', f'{{"notes": {{"token": ["{CANARY}"]}}}}'])
def test_a_file_that_cannot_be_read_is_not_treated_as_empty_and_not_quoted(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")

    with pytest.raises(BadFile) as caught:
        Secrets(path)
    assert CANARY not in str(caught.value)


def test_the_file_is_not_read_through_a_link(path: Path, tmp_path: Path) -> None:
    Secrets(tmp_path / "other.json").set("notes", "token", CANARY)
    path.symlink_to(tmp_path / "other.json")

    with pytest.raises(BadFile):
        Secrets(path)


# -- the configuration with them


def test_an_extension_reads_and_changes_its_secrets_like_any_other_value(path: Path) -> None:
    store = InMemoryStore()
    secrets = Secrets(path)
    secrets.declare("notes", ["token"])
    config = SecretConfig(store, secrets)

    assert config.get_config("notes", "token") == ConfigValue(None, 0)
    assert config.set_config("notes", ConfigSet("token", CANARY, 0)) == ConfigSaved(True, 1)
    assert config.set_config("notes", ConfigSet("mode", "dark")) == ConfigSaved(True, 2)
    assert config.set_config("notes", ConfigSet(" token ", "late", 0)) == ConfigSaved(False, 1)

    assert config.get_config("notes", "token") == ConfigValue(CANARY, 1)
    assert config.read_config("notes").values == {"token": CANARY, "mode": "dark"}
    assert config.read_changes("notes", 0) == [ConfigChanged("token", CANARY, 1), ConfigChanged("mode", "dark", 2)]
    assert store.read_config("notes").values == {"token": "***", "mode": "dark"}

    assert config.remove_config("notes", "token", if_revision=1) == ConfigSaved(True, 3)
    assert config.get_config("notes", "token") == ConfigValue(None, 0)
    assert CANARY not in path.read_text(encoding="utf-8")


def test_a_secret_that_cannot_be_stored_is_not_in_the_store_either(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = InMemoryStore()
    config = SecretConfig(store, Secrets(path), ["token"])
    monkeypatch.setattr("becket.host.starting.secrets.replace_file", fail)

    with pytest.raises(OSError, match="space"):
        config.set_config("notes", ConfigSet("token", CANARY))
    assert store.read_config("notes").values == {}


# -- what older stores hold


def test_secrets_in_a_store_are_moved_out_and_none_of_their_bytes_stay(path: Path, tmp_path: Path) -> None:
    secrets = Secrets(path)
    with SqliteStore(tmp_path / "store.sqlite") as store:
        for value in (f"first {CANARY}", f"{CANARY} " * 400, f"last {CANARY}"):
            store.set_config("notes", ConfigSet("token", value))
        store.set_config("notes", ConfigSet("removed", f"removed {CANARY}"))
        store.remove_config("notes", "removed")
        store.set_config("notes", ConfigSet("mode", "dark"))

        assert move_secrets(store, secrets, "notes", ["token", "removed", "unset"]) == ("token",)

        assert secrets.values_of("notes") == {"token": f"last {CANARY}"}
        assert store.read_config("notes").values == {"token": "***", "mode": "dark"}
        changes = store.read_changes("notes", 0)
        assert changes is not None
        assert [change.revision for change in changes] == [1, 2, 3, 4, 5, 6]
        assert CANARY.encode() not in bytes_of(tmp_path)
        assert move_secrets(store, secrets, "notes", ["token", "removed", "unset"]) == ()
    assert CANARY.encode() not in bytes_of(tmp_path)
    with SqliteStore(tmp_path / "store.sqlite") as store:  # its quotas are still right
        assert store.get_config("notes", "token").value == "***"
        assert store.verify() == []


def test_a_custom_store_is_emptied_of_secrets_too(path: Path) -> None:
    store = InMemoryStore()
    store.set_config("notes", ConfigSet("token", CANARY))

    assert move_secrets(store, Secrets(path), "notes", ["token"]) == ("token",)

    assert store.get_config("notes", "token").value == "***"


# -- a host

NOTES = """
from becket import ExtensionServer
from becket.extension import tool

class Notes(ExtensionServer):
    id, version = "notes", "1.0.0"

    @tool("Says what it was given, what it reads, and what it has heard.")
    async def look(self) -> dict:
        return {"given": self.config.get("token"), "read": await self.host.config.get("token")}

    @tool("Changes it.")
    async def change(self, token: str) -> None:
        await self.host.config.set("token", token)

Notes().run()
"""
GRANTS = ["config.write", "config.subscribe", "tools.register"]


@pytest.mark.process
async def test_a_host_moves_secrets_out_of_an_older_store_and_gives_them_to_their_extension(tmp_path: Path) -> None:
    manifest = f'permissions = {GRANTS}\n[config.token]\ntype = "string"\nsecret = true\n'
    write_extension(tmp_path / "root" / "notes", "notes", manifest, files={"main.py": NOTES})
    data = tmp_path / "data"
    data.mkdir()
    with SqliteStore(data / "store.sqlite") as store:
        store.set_config("notes", ConfigSet("token", CANARY))

    for expected, new in ((CANARY, f"new {CANARY}"), (f"new {CANARY}", "x")):
        with anyio.fail_after(60):
            async with Host([tmp_path / "root"], data=data, ask=lambda *_: True) as host:
                notes = await host.ready("notes")
                assert json.loads(await notes.call_tool("look")) == {"given": expected, "read": expected}
                await notes.call_tool("change", {"token": new})
                assert json.loads(await notes.call_tool("look"))["read"] == new
                assert CANARY not in str(host.problems)
        assert CANARY.encode() not in bytes_of(data)
        assert (data / "secrets.json").stat().st_mode & 0o777 == 0o600
        assert CANARY not in (data / "audit.jsonl").read_text(encoding="utf-8")
