"""The launch settings of an extension, from its host defaults and the settings of the host."""

from __future__ import annotations

from typing import Any, cast

import pytest

from becket.host.starting.candidate import Candidate
from becket.host.starting.connect import ExtensionConnector
from becket.host.starting.launch import LaunchSettings, LaunchSpec, launch_extension
from becket.host.starting.manifest import Manifest
from becket.limits import DEFAULT_LIMITS, Limits
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.stores.in_memory import InMemoryStore

pytestmark = pytest.mark.loops

MANIFEST = Manifest(id="notes", version="1.0.0", command=("python3", "notes.py"), dialect="synaps")


async def limits_of(monkeypatch: pytest.MonkeyPatch, limits: Limits = DEFAULT_LIMITS, *, restarts: int) -> Limits:
    """Returns the limits that a program of SynapsCLI is connected with."""
    given: list[dict[str, Any]] = []

    async def open() -> None: ...

    def connect(command: object, **options: Any) -> ExtensionConnector:
        given.append(options)
        return ExtensionConnector(cast("Any", open))

    monkeypatch.setattr("becket.host.starting.launch.connect_extension", connect)
    candidate = Candidate(MANIFEST, "/notes", "/notes/plugin.json", 0)
    settings = LaunchSettings(store=InMemoryStore(), audit=lambda event: None, limits=limits)
    spec = LaunchSpec(("/bin/true",), "/notes")
    await launch_extension(candidate, spec, Gate("notes", Grants()), settings, restarts=restarts)
    found: Limits = given[0]["limits"]
    return found


async def test_a_system_may_wait_for_a_first_handshake_longer_than_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, again = [(await limits_of(monkeypatch, restarts=restarts)).handshake for restarts in (0, 1)]
    assert first > again == 10


async def test_settings_of_the_host_override_the_host_defaults_of_a_dialect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = Limits(handshake=3.0)
    assert (await limits_of(monkeypatch, chosen, restarts=0)).handshake == 3.0
    assert (await limits_of(monkeypatch, chosen, restarts=1)).handshake == 3.0
