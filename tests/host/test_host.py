"""A whole host: from folders to running extensions, their combined offers, and persistence."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import textwrap
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest
from msgspec.structs import replace

import becket.host.revocation_retry
from becket.cli.support.status_table import build_status_rows
from becket.contract.audit import CallDecided, FilesChanged as ChangeRecorded, ProcessStarted as StartRecorded
from becket.contract.hooks import Block, HookEvent
from becket.contract.providers import TextDelta, user
from becket.errors import (
    BadCapabilities,
    ConnectionLost,
    ExtensionRefused,
    LocalProtocolError,
    NotDeclared,
    PeerCrashed,
    ProviderDisabled,
    RemoteError,
    RevocationNotPersistent,
    StartFailed,
    StoreInUse,
    UnknownPermission,
)
from becket.host.audit_log import read_audit
from becket.host.diagnostics import ProblemCode, Severity
from becket.host.events import (
    ExtensionChanged,
    ExtensionDiscovered,
    ExtensionFailed,
    ExtensionLogged,
    ExtensionReloaded,
    ExtensionRestarted,
    ExtensionRestarting,
    ExtensionStarted,
    ExtensionStopped,
    HostEvent,
    PermissionGranted,
    PermissionRevoked,
    ProblemFound,
)
from becket.host.extension_set import ExtensionSet
from becket.host.heartbeat import HeartbeatPolicy
from becket.host.host import Host
from becket.host.host_config import ExtensionConfig
from becket.host.host_settings import HostSettings, group_arguments
from becket.host.lifecycle import ExtensionState, Health
from becket.host.metrics import ExtensionMetrics
from becket.host.restart import RestartPolicy
from becket.host.starting.becket_toml import FILE_NAME
from becket.host.starting.consent import ConsentController
from becket.host.starting.consent_request import ConsentRequest
from becket.host.starting.folder_digest import digest_folder
from becket.host.starting.grants_file import edit_grants, load_grants
from becket.host.supervision_policy import SupervisionPolicy
from becket.limits import Limits
from becket.methods.descriptors import Method
from becket.methods.registry import Registry
from becket.permissions.policies import Decision

pytestmark = [pytest.mark.process, pytest.mark.loops]

on_asyncio = pytest.mark.loops("asyncio")  # for decisions and records, which are the same on any loop
KIT = """
import os
from becket import ExtensionServer
from becket.contract.hooks import Block, Continue
from becket.contract.providers import Model, ProviderResult
from becket.extension import hook, provider, tool
"""
NOTES = """
class Notes(ExtensionServer):
    id, version = "notes", "1.0.0"

    @tool("Keeps a text.")
    def keep(self, text: str) -> int:
        self.host.blocking.memory.append(text)
        return len(self.host.blocking.memory.query())

    @tool("Ends the process.")
    def crash(self) -> None:
        os._exit(7)

if __name__ == "__main__":
    Notes().run()
"""
GUARD = """
class Guard(ExtensionServer):
    id, version = "guard", "1.0.0"

    @hook("before_tool_call")
    async def look(self, event):
        return Block("no") if "rm" in str(event.tool_input) else Continue()

    @provider("local", models=[Model("small", streaming=True)])
    async def answer(self, request, out):
        await out.text("hel")
        await out.text("lo")
        return ProviderResult.of_text("hello")

if __name__ == "__main__":
    Guard().run()
"""
MEMORY = ["memory.read", "memory.write", "tools.register"]
GUARDING = ["tools.intercept", "providers.register"]
QUICK = SupervisionPolicy(restart=RestartPolicy(delay=0.01))


def write_extension(
    root: Path, id: str, code: str, permissions: list[str], more: str = "", program: str = "python3"
) -> Path:
    folder = root / id
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(KIT + textwrap.dedent(code), encoding="utf-8")
    lines = [f'id = "{id}"', 'version = "1.0.0"', f'command = ["{program}", "main.py"]', f"permissions = {permissions}"]
    (folder / FILE_NAME).write_text("\n".join([*lines, more, ""]), encoding="utf-8")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "extensions"
    write_extension(root, "notes", NOTES, MEMORY)
    return root


def host_of(root: Path, **options: Any) -> Host:
    return Host(
        [root],
        **group_arguments(
            {"data": None, "grants": {"notes": MEMORY, "guard": GUARDING}, "supervision": QUICK, **options}
        ),
    )


class EventRecorder:
    """The events of a host."""

    def __init__(self, host: Host) -> None:
        self.events: list[HostEvent] = []
        self._changed = anyio.Event()
        host.events.subscribe(HostEvent, self._take)

    def _take(self, event: HostEvent) -> None:
        self.events.append(event)
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.wait()

    def of(self, kind: type[HostEvent]) -> list[HostEvent]:
        return [event for event in self.events if isinstance(event, kind)]


async def test_an_extension_in_a_folder_is_found_started_and_called(root: Path) -> None:
    with anyio.fail_after(60):
        async with host_of(root) as host:
            notes = await host.ready("notes")
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"
            assert await host.call_tool("notes:keep", {"text": "eggs"}) == "2"
            assert [tool.name for tool in host.tools] == ["notes_keep", "notes_crash"]
            (status,) = host.status()
            assert (status.state, status.health, status.tools) == (ExtensionState.READY, Health.RUNNING, 2)
            assert status.pid is not None
            assert (status.metrics.calls, status.metrics.inbound_calls) == (2, 4)  # each keeps a text, and looks at all
            assert "1 of 1" in repr(host)
    assert [tool.name for tool in host.tools] == []


def test_log_records_of_an_extension_are_delivered_in_a_plain_asyncio_program(root: Path) -> None:
    write_extension(root, "loud", "import sys; print('no disk', file=sys.stderr); sys.exit(3)", [])

    async def main() -> None:
        host = host_of(root)
        recorder = EventRecorder(host)
        with anyio.fail_after(60):
            async with host:
                await recorder.until(lambda: ExtensionLogged("loud", "info", "no disk") in recorder.events)

    asyncio.run(main())


async def test_any_thread_may_read_the_status_of_the_extensions(root: Path) -> None:
    write_extension(root, "guard", GUARD, GUARDING)
    write_extension(root, "lost", "", [], program="no-such-program")
    host = host_of(root)

    def ask_often() -> list[tuple[str, ...]]:
        return [tuple(status.id for status in host.status()) for _ in range(100)]

    with anyio.fail_after(60):
        assert await anyio.to_thread.run_sync(host.status) == ()
        async with host:
            await host.settled()
            here, there = host.status(), await anyio.to_thread.run_sync(host.status)
            assert [replace(status, metrics=ExtensionMetrics()) for status in there] == [
                replace(status, metrics=ExtensionMetrics()) for status in here
            ]
            assert await anyio.to_thread.run_sync(lambda: host["notes"].health) is Health.RUNNING
            assert [status.hooks != () for status in there] == [True, False, False]
            recorder = json.loads(json.dumps([status.to_dict() for status in there]))
            assert [one["state"] for one in recorder] == ["ready", "failed", "ready"]
            assert recorder[2]["figures"]["calls"] == 0
            seen: list[list[tuple[str, ...]]] = []

            async def ask_meanwhile() -> None:
                seen.append(await anyio.to_thread.run_sync(ask_often))

            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(ask_meanwhile)
                for number in range(20):
                    await host.call_tool("notes:keep", {"text": str(number)})
                await host["notes"].reload()
            assert {ids for responses in seen for ids in responses} == {("guard", "lost", "notes")}
        stopped = await anyio.to_thread.run_sync(host.status)
        assert [status.state for status in stopped] == [
            ExtensionState.STOPPED,
            ExtensionState.FAILED,
            ExtensionState.STOPPED,
        ]


async def test_one_bad_extension_does_not_disturb_the_others(root: Path) -> None:
    write_extension(root, "broken", "raise SystemExit('not today')", [])
    write_extension(root, "missing", NOTES, [], program="no-such-program")
    (root / "unreadable").mkdir()
    (root / "unreadable" / FILE_NAME).write_text("id = ", encoding="utf-8")
    with anyio.fail_after(60):
        async with host_of(root) as host:
            notes = await host.ready("notes")
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"
            with pytest.raises(StartFailed) as failed:
                await host.ready("broken")
            assert "not today" in str(failed.value)
            with pytest.raises(ExtensionRefused) as refused:
                await host.ready("missing")
            assert "no-such-program" in str(refused.value)
            with pytest.raises(NotDeclared):
                await host.ready("unreadable")
            states = {status.id: status.state for status in host.status()}
            assert states == {
                "notes": ExtensionState.READY,
                "broken": ExtensionState.FAILED,
                "missing": ExtensionState.FAILED,
            }
            codes = {problem.extension: problem.code for problem in host.problems}
            assert (codes["broken"], codes["missing"]) == (ProblemCode.START_FAILED, ProblemCode.COMMAND_INVALID)


async def test_an_extension_without_consent_is_refused_with_a_hint(root: Path, tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with host_of(root, grants={}, data=tmp_path / "data") as host:
            with pytest.raises(ExtensionRefused) as refused:
                await host.ready("notes")
            assert "memory.write" in refused.value.because
            assert f"`becket grant notes --root {root} --data {tmp_path / 'data'}`" in refused.value.hint
            assert len(host.tools) == 0
            (problem,) = [problem for problem in host.problems if problem.extension == "notes"]
            assert (problem.code, problem.severity) == (ProblemCode.CONSENT_MISSING, Severity.WAITING)


@on_asyncio
async def test_consent_is_given_once_and_stored(root: Path, tmp_path: Path) -> None:
    prompts: list[str] = []

    async def ask(prompt: str, decision: Decision) -> bool:
        prompts.append(prompt)
        return True

    with anyio.fail_after(60):
        for _ in range(2):
            async with host_of(root, grants={}, data=tmp_path / "data", ask=ask) as host:
                notes = await host.ready("notes")
                await notes.call_tool("keep", {"text": "milk"})
    assert len(prompts) == 1
    assert "memory.write" in prompts[0]
    assert "memory.write" in (tmp_path / "data" / "grants.toml").read_text(encoding="utf-8")


QUIET = """
class Quiet(ExtensionServer):
    id, version = "quiet", "1.0.0"

if __name__ == "__main__":
    Quiet().run()
"""


@on_asyncio
async def test_an_extension_without_requests_is_prompted_for_once_where_there_is_a_prompt(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "root", "quiet", QUIET, [])
    prompts: list[str] = []

    def ask(prompt: str, decision: Decision) -> bool:
        prompts.append(prompt)
        return True

    with anyio.fail_after(60):
        for _ in range(2):
            async with host_of(tmp_path / "root", grants={}, data=tmp_path / "data", ask=ask) as host:
                await host.ready("quiet")
    assert len(prompts) == 1
    assert "it requests no permission" in prompts[0]
    assert load_grants(tmp_path / "data" / "grants.toml")["quiet"].digest == digest_folder(folder).digest


@on_asyncio
async def test_an_extension_without_requests_does_not_start_after_a_refusal(tmp_path: Path) -> None:
    write_extension(tmp_path / "root", "quiet", QUIET, [])
    with anyio.fail_after(60):
        async with host_of(tmp_path / "root", grants={}, ask=lambda prompt, decision: False) as host:
            with pytest.raises(ExtensionRefused):
                await host.ready("quiet")


@on_asyncio
@pytest.mark.parametrize("options", [{"grants": {"quiet": []}, "ask": pytest.fail}, {"grants": {}}])
async def test_an_extension_without_requests_starts_if_configured_or_without_a_prompt(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    write_extension(tmp_path / "root", "quiet", QUIET, [])
    with anyio.fail_after(60):
        async with host_of(tmp_path / "root", **options) as host:
            assert (await host.ready("quiet")).state is ExtensionState.READY


async def test_an_extension_without_requests_starts_when_another_program_approves_its_files(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "root", "quiet", QUIET, [])
    grants = tmp_path / "data" / "grants.toml"
    host = host_of(tmp_path / "root", grants={}, data=tmp_path / "data", ask=lambda prompt, decision: False)
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            await host.settled()
            edit_grants(grants, "quiet", lambda entry: entry.with_grants([], digest_folder(folder).digest))
            await recorder.until(lambda: bool(recorder.of(ExtensionStarted)))


@on_asyncio
async def test_changed_files_need_a_new_consent_outside_of_development(root: Path, tmp_path: Path) -> None:
    def ask(prompt: str, decision: Decision) -> bool:
        return True

    with anyio.fail_after(60):
        async with host_of(root, grants={}, data=tmp_path / "data", ask=ask) as host:
            await host.ready("notes")
        with (root / "notes" / "main.py").open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        async with host_of(root, grants={}, data=tmp_path / "data") as host:
            with pytest.raises(ExtensionRefused) as refused:
                await host.ready("notes")
            assert "changed" in refused.value.because
        async with host_of(root, grants={}, data=tmp_path / "data", development=True) as host:
            await host.ready("notes")


VERSIONED = """
class Notes(ExtensionServer):
    id, version = "notes", "1.0.0"

    @tool("Says which it is, and where.")
    def which(self) -> str:
        return f"one in {os.getcwd()} {self.root}"

    @tool("Ends the process.")
    def crash(self) -> None:
        os._exit(7)

if __name__ == "__main__":
    Notes().run()
"""
REGISTERING = ["tools.register"]


def rewrite(folder: Path, old: str, new: str) -> None:
    main = folder / "main.py"
    main.write_text(main.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def consent(prompt: str, decision: Decision) -> bool:
    return True


async def test_a_restart_runs_the_approved_files_whatever_became_of_them(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "root", "notes", VERSIONED, REGISTERING)
    with anyio.fail_after(60):
        async with host_of(tmp_path / "root", grants={}, data=tmp_path / "data", ask=consent) as host:
            notes = await host.ready("notes")
            before = await notes.call_tool("which")
            rewrite(folder, "one in", "another in")
            with pytest.raises(PeerCrashed):
                await notes.call_tool("crash")
            assert await notes.call_tool("which") == before
            digest = load_grants(tmp_path / "data" / "grants.toml")["notes"].digest
            copy = tmp_path / "data" / "copies" / digest
            assert before == f"one in {copy} {copy}"
    starts = [
        one.event for one in read_audit(tmp_path / "data" / "audit.jsonl") if isinstance(one.event, StartRecorded)
    ]
    assert [(start.version, start.digest) for start in starts] == [("1.0.0", digest)] * 2


def find_compiled(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[0] for path in folder.rglob("*.pyc"))


@on_asyncio
async def test_a_first_start_from_a_copy_compiles_only_its_own_files(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "root", "quiet", "import part\n" + QUIET, [])
    (folder / "part.py").write_text("", encoding="utf-8")
    with anyio.fail_after(60):
        async with host_of(tmp_path / "root", grants={}, data=tmp_path / "data", ask=consent) as host:
            await host.ready("quiet")
    assert find_compiled(tmp_path / "data") == ["part"]
    assert find_compiled(folder) == []


@on_asyncio
async def test_without_a_copy_changed_files_are_prompted_for_once_and_do_not_start(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "root", "notes", VERSIONED, REGISTERING)
    prompts: list[str] = []

    def ask(prompt: str, decision: Decision) -> bool:
        prompts.append(prompt)
        return len(prompts) == 1

    host = host_of(tmp_path / "root", grants={}, ask=ask)
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            rewrite(folder, "one in", "another in")
            with pytest.raises(PeerCrashed):
                await notes.call_tool("crash")
            await recorder.until(lambda: bool(recorder.of(ExtensionFailed)))
            with pytest.raises(ExtensionRefused) as refused:
                await notes.call_tool("which")
            assert "its files have changed" in refused.value.because
            assert len(prompts) == 2
            rewrite(folder, "another in", "one in")
            await notes.start()
            assert (await notes.call_tool("which")).startswith("one in")


@on_asyncio
async def test_a_reload_without_consent_leaves_the_running_copy(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "root", "notes", VERSIONED, REGISTERING)
    responses = iter([True, False, True])

    async def ask(prompt: str, decision: Decision) -> bool:
        return next(responses)

    with anyio.fail_after(60):
        async with host_of(tmp_path / "root", grants={}, data=tmp_path / "data", ask=ask) as host:
            notes = await host.ready("notes")
            pid = host.status()[0].pid
            rewrite(folder, "one in", "another in")
            with pytest.raises(ExtensionRefused):
                await notes.reload()
            assert (await notes.call_tool("which")).startswith("one in")
            assert host.status()[0].pid == pid
            with pytest.raises(ExtensionRefused):  # a refusal is not prompted for again
                await notes.reload()
            rewrite(folder, "another in", "a third in")
            await notes.reload()
            assert (await notes.call_tool("which")).startswith("a third in")
    assert len(os.listdir(tmp_path / "data" / "copies")) == 1


async def test_a_reload_reads_the_manifest_again(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "root", "notes", VERSIONED, REGISTERING)
    with anyio.fail_after(60):
        async with host_of(tmp_path / "root") as host:
            notes = await host.ready("notes")
            (folder / "other.py").write_text(KIT + VERSIONED.replace("one in", "another in"), encoding="utf-8")
            manifest = (folder / FILE_NAME).read_text(encoding="utf-8")
            (folder / FILE_NAME).write_text(
                manifest.replace("main.py", "other.py").replace("1.0.0", "2.0.0"), encoding="utf-8"
            )
            await notes.reload()
            assert (await notes.call_tool("which")).startswith("another in")
            assert host.status()[0].version == "2.0.0"
            (folder / FILE_NAME).write_text("id = ", encoding="utf-8")
            with pytest.raises(ExtensionRefused) as refused:
                await notes.reload()
            assert "not found any more" in refused.value.because
            assert (await notes.call_tool("which")).startswith("another in")


@on_asyncio
async def test_a_changed_file_without_consent_is_reported_and_not_run(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "root", "notes", VERSIONED, REGISTERING)
    responses = iter([True])
    host = host_of(
        tmp_path / "root",
        grants={},
        data=tmp_path / "data",
        ask=lambda prompt, decision: next(responses, False),
        watch="reload",
    )
    recorder = EventRecorder(host)

    def problems() -> list[str]:
        return [event.diagnostic.problem for event in recorder.events if isinstance(event, ProblemFound)]

    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            number = 0
            while not problems():  # the first may come before the watcher runs
                number += 1
                rewrite(folder, "one in", f"another {number} in")
                with anyio.move_on_after(1):
                    await recorder.until(lambda: bool(problems()))
            assert "its files have changed" in problems()[0]
            assert (await notes.call_tool("which")).startswith("one in")
            assert not recorder.of(ExtensionReloaded)


@on_asyncio
async def test_in_development_the_audit_records_that_changed_files_were_started(root: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with anyio.fail_after(60):
        async with host_of(root, grants={}, data=data, ask=consent) as host:
            await host.ready("notes")
        approved = load_grants(data / "grants.toml")["notes"].digest
        rewrite(root / "notes", "Keeps a text.", "Keeps any text.")
        async with host_of(root, grants={}, data=data, development=True) as host:
            await host.ready("notes")
    changes = [one.event for one in read_audit(data / "audit.jsonl") if isinstance(one.event, ChangeRecorded)]
    assert changes == [ChangeRecorded("notes", approved, digest_folder(root / "notes").digest)]


# -- while a prompt is open


class Person:
    """A user who decides when the test lets it."""

    def __init__(self) -> None:
        self.prompted: list[str] = []
        self._changed = anyio.Event()
        self._answers: dict[str, tuple[anyio.Event, list[bool]]] = {}

    async def ask(self, prompt: str, decision: Decision) -> bool:
        self.prompted.append(decision.extension)
        event, responses = self._answers[decision.extension] = anyio.Event(), []
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
        await event.wait()
        return responses[0]

    async def wait_for(self, *prompted: str) -> None:
        while self.prompted != [*prompted]:
            await self._changed.wait()

    def decide(self, extension: str, *, allowed: bool) -> None:
        event, responses = self._answers[extension]
        responses.append(allowed)
        event.set()


def write_requesting(root: Path, *ids: str, more: str = "") -> None:
    for id in ids:
        write_extension(root, id, VERSIONED.replace('"notes"', f'"{id}"'), REGISTERING, more)


async def test_approved_extensions_run_while_the_others_are_prompted_for_one_by_one(root: Path) -> None:
    write_requesting(root, "ask-a", "ask-b")
    person = Person()
    with anyio.fail_after(60):
        async with host_of(root, grants={"notes": MEMORY}, ask=person.ask) as host:
            await person.wait_for("ask-a")
            notes = await host.ready("notes")
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"
            assert person.prompted == ["ask-a"]
            status = {status.id: status for status in host.status()}["ask-a"]
            assert (status.state, status.because) == (ExtensionState.STOPPED, "waiting for consent")
            person.decide("ask-a", allowed=True)
            await person.wait_for("ask-a", "ask-b")
            assert (await host.ready("ask-a")).state is ExtensionState.READY
            person.decide("ask-b", allowed=False)
            with pytest.raises(ExtensionRefused):
                await host.ready("ask-b")
            assert {*host} == {"notes", "ask-a"}


@on_asyncio
async def test_the_prompt_for_a_running_extension_has_the_same_fields(root: Path) -> None:
    requests: list[ConsentRequest] = []

    def ask(prompt: str, request: ConsentRequest) -> bool:
        requests.append(request)
        return True

    async def ask_later(prompt: str, request: ConsentRequest) -> bool:
        return ask(prompt, request)

    with anyio.fail_after(60):
        for callback in (ask, ask_later):
            async with host_of(root, grants={"notes": ["tools.register", "memory.read"]}, ask=callback) as host:
                notes = await host.ready("notes")
                assert await notes.call_tool("keep", {"text": "milk"}) == "1"

    assert requests[0] == requests[1]
    request = requests[0]
    assert (request.extension, request.method, request.is_start) == ("notes", "memory.append", False)
    assert (request.permission, request.permissions) == ("memory.write", ("memory.write",))
    assert request.held == ("memory.read", "tools.register")
    assert request.command[1:] == (str(root / "notes" / "main.py"),)
    assert request.working_directory == str(root / "notes")


@on_asyncio
@pytest.mark.parametrize("is_async", [True, False])
async def test_only_true_gives_a_running_extension_a_permission(root: Path, *, is_async: bool) -> None:
    def ask(prompt: str, request: ConsentRequest) -> Any:
        return "yes"

    async def ask_later(prompt: str, request: ConsentRequest) -> Any:
        return 1

    grants = {"notes": ["tools.register", "memory.read"]}
    with anyio.fail_after(60):
        async with host_of(root, grants=grants, ask=ask_later if is_async else ask) as host:
            notes = await host.ready("notes")
            with pytest.raises(RemoteError):
                await notes.call_tool("keep", {"text": "milk"})
            assert not notes.gate.allows("memory.write")


async def test_ready_waits_for_the_response(root: Path) -> None:
    write_requesting(root, "ask-a")
    person = Person()
    with anyio.fail_after(60):
        async with host_of(root, ask=person.ask) as host, anyio.create_task_group() as tasks:
            ready: list[ExtensionState] = []

            async def wait() -> None:
                ready.append((await host.ready("ask-a")).state)

            tasks.start_soon(wait)
            await person.wait_for("ask-a")
            assert ready == []
            person.decide("ask-a", allowed=True)
        assert ready == [ExtensionState.READY]


@on_asyncio
async def test_an_extension_that_needs_a_refused_one_does_not_start(root: Path) -> None:
    write_requesting(root, "ask-a")
    write_extension(root, "early", NOTES.replace('"notes"', '"early"'), ["tools.register"], 'after = ["ask-a"]')
    person = Person()
    with anyio.fail_after(60):
        async with host_of(root, grants={"notes": MEMORY, "early": REGISTERING}, ask=person.ask) as host:
            await person.wait_for("ask-a")
            person.decide("ask-a", allowed=False)
            with pytest.raises(ExtensionRefused) as refused:
                await host.ready("early")
            assert "what it needs is not there" in refused.value.because
            assert any("ask-a" in problem.problem for problem in host.problems if problem.extension == "early")


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_host_can_be_closed_while_a_prompt_is_open(root: Path, *, is_async: bool) -> None:
    write_requesting(root, "ask-a")
    person, end = Person(), threading.Event()

    def ask(prompt: str, decision: Decision) -> bool:
        anyio.from_thread.run_sync(prompted.set)
        return end.wait()

    prompted = anyio.Event()
    with anyio.fail_after(60):
        try:
            async with host_of(root, ask=person.ask if is_async else ask) as host:
                await (person.wait_for("ask-a") if is_async else prompted.wait())
                await host.ready("notes")
            assert {status.state for status in host.status()} == {ExtensionState.STOPPED}
        finally:
            end.set()


# -- what another program writes into grants.toml


async def test_a_permission_that_another_program_takes_away_is_gone_in_a_running_host(
    root: Path, tmp_path: Path
) -> None:
    grants = tmp_path / "data" / "grants.toml"
    host = host_of(root, grants={}, data=tmp_path / "data", ask=consent)
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            edit_grants(grants, "notes", lambda entry: entry.with_denials(["memory.write"]))
            await recorder.until(lambda: bool(recorder.of(PermissionRevoked)))
            with pytest.raises(RemoteError):
                await notes.call_tool("keep", {"text": "milk"})
            edit_grants(grants, "notes", lambda entry: entry.with_grants(["memory.write"]))
            await recorder.until(lambda: PermissionGranted("notes", "memory.write", "grants.toml") in recorder.events)
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"


async def test_a_refused_extension_starts_when_another_program_grants_it(root: Path, tmp_path: Path) -> None:
    host = host_of(root, grants={}, data=tmp_path / "data")
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            with pytest.raises(ExtensionRefused):
                await host.ready("notes")
            edit_grants(tmp_path / "data" / "grants.toml", "notes", lambda entry: entry.with_grants(MEMORY))
            await recorder.until(lambda: bool(recorder.of(ExtensionStarted)))
            assert await host.call_tool("notes:keep", {"text": "milk"}) == "1"
            assert [*host] == ["notes"]


@on_asyncio
async def test_a_refused_extension_starts_when_the_host_grants_all_of_its_requests(root: Path) -> None:
    write_requesting(root, "ask-a")
    with anyio.fail_after(60):
        async with host_of(root) as host:
            with pytest.raises(ExtensionRefused):
                await host.ready("ask-a")
            await host.revoke("ask-a", "memory.read")
            with pytest.raises(ExtensionRefused):
                host["ask-a"]
            await host.grant("ask-a", "tools.register")
            assert (await host.ready("ask-a")).state is ExtensionState.READY


@on_asyncio
@pytest.mark.parametrize("permissions", [REGISTERING, []])
async def test_a_refused_extension_is_approved_with_all_that_it_requests(
    root: Path, tmp_path: Path, permissions: list[str]
) -> None:
    program = VERSIONED.replace('"notes"', '"ask-a"')
    folder = write_extension(root, "ask-a", program if permissions else program.replace("@tool", "#"), permissions)
    data = tmp_path / "data"
    with anyio.fail_after(60):
        async with host_of(root, grants={}, data=data, ask=lambda *_: False) as host:
            with pytest.raises(ExtensionRefused):
                await host.ready("ask-a")
            await host.grant("ask-a")
            assert (await host.ready("ask-a")).state is ExtensionState.READY
            await host.grant("ask-a")  # it holds all of it already
        assert load_grants(data / "grants.toml")["ask-a"].allow == tuple(permissions)
        async with host_of(root, grants={}, data=data, ask=lambda *_: False) as host:
            assert (await host.ready("ask-a")).state is ExtensionState.READY
        (folder / "main.py").write_text("raise SystemExit", encoding="utf-8")
        async with host_of(root, grants={}, data=data, ask=lambda *_: False) as host:
            with pytest.raises(ExtensionRefused, match="have changed"):
                await host.ready("ask-a")


async def test_approving_an_unknown_extension_is_refused(root: Path) -> None:
    async with host_of(root) as host:
        with pytest.raises(NotDeclared, match="stranger"):
            await host.grant("stranger")


async def test_skipped_extensions_start_in_order_when_their_requirement_is_granted(root: Path) -> None:
    write_requesting(root, "first")
    write_requesting(root, "second", more='after = ["first"]')
    write_requesting(root, "third", more='after = ["second", "notes"]')
    host = host_of(root, grants={"notes": MEMORY, "second": REGISTERING, "third": REGISTERING})
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            await host.settled()
            assert [status.id for status in host.status() if status.state is ExtensionState.READY] == ["notes"]
            await host.grant("first", *REGISTERING)
            for id in ("third", "second", "first"):
                assert (await host.ready(id)).state is ExtensionState.READY
            assert (await host.call_tool("third:which")).startswith("one in")
    started = [event.extension for event in recorder.events if isinstance(event, ExtensionStarted)]
    assert started == ["notes", "first", "second", "third"]


async def test_skipped_extensions_start_when_another_program_grants_their_requirement(
    root: Path, tmp_path: Path
) -> None:
    write_requesting(root, "late", more='after = ["notes"]')
    host = host_of(root, grants={"late": REGISTERING}, data=tmp_path / "data")
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            await host.settled()
            edit_grants(tmp_path / "data" / "grants.toml", "notes", lambda entry: entry.with_grants(MEMORY))
            await recorder.until(lambda: len(recorder.of(ExtensionStarted)) == 2)
            assert {status.state for status in host.status()} == {ExtensionState.READY}


@on_asyncio
async def test_extensions_with_other_reasons_stay_refused_when_their_requirement_is_granted(root: Path) -> None:
    write_requesting(root, "first", "other")
    write_requesting(root, "asking", more='after = ["first"]')
    write_requesting(root, "both", more='after = ["other", "first"]')
    write_requesting(root, "last", more='after = ["asking"]')
    host = host_of(root, grants={"both": REGISTERING, "last": REGISTERING})
    with anyio.fail_after(60):
        async with host:
            await host.settled()
            await host.grant("first", *REGISTERING)
            await host.ready("first")
            for id in ("asking", "both", "last"):
                with pytest.raises(ExtensionRefused):
                    await host.ready(id)
            recorder = [problem.problem for problem in host.problems if problem.extension == "both"]
            assert recorder == ["needs other, which was refused"]
            await host.grant("other", *REGISTERING)
            await host.grant("asking", *REGISTERING)
            for id in ("both", "last"):
                assert (await host.ready(id)).state is ExtensionState.READY


async def test_an_extension_that_is_granted_before_its_requirement_waits_for_it(root: Path) -> None:
    write_requesting(root, "first")
    write_requesting(root, "second", more='after = ["first"]')
    with anyio.fail_after(60):
        async with host_of(root) as host:
            await host.settled()
            for _ in range(2):
                await host.grant("second", *REGISTERING)
                with pytest.raises(ExtensionRefused) as refused:
                    await host.ready("second")
                assert "what it needs is not there" in refused.value.because
            await host.grant("first", *REGISTERING)
            assert (await host.ready("second")).state is ExtensionState.READY


async def test_a_grant_while_the_host_still_cleans_up_after_its_start_begins_a_start_of_its_own(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_requesting(root, "first")
    begun, is_granted = threading.Event(), threading.Event()

    def clean_up(_: ConsentController) -> None:
        begun.set()
        is_granted.wait(60)

    monkeypatch.setattr(ConsentController, "remove_unused_snapshots", clean_up)
    with anyio.fail_after(60):
        async with host_of(root) as host:
            await anyio.to_thread.run_sync(begun.wait)
            await host.grant("first", *REGISTERING)
            is_granted.set()
            assert (await host.ready("first")).state is ExtensionState.READY


@on_asyncio
async def test_broken_grants_are_reported_and_change_nothing(root: Path, tmp_path: Path) -> None:
    host = host_of(root, grants={}, data=tmp_path / "data", ask=consent)
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            (tmp_path / "data" / "broken").write_text("[notes", encoding="utf-8")
            (tmp_path / "data" / "broken").replace(tmp_path / "data" / "grants.toml")  # never empty for a moment
            await recorder.until(lambda: bool(recorder.of(ProblemFound)))
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"


async def test_a_grant_for_changed_files_reloads_them_where_changes_are_watched(tmp_path: Path) -> None:
    folder = write_extension(tmp_path / "root", "notes", VERSIONED, REGISTERING)
    data = tmp_path / "data"
    digest = digest_folder(folder).digest
    edit_grants(data / "grants.toml", "notes", lambda entry: entry.with_grants(REGISTERING, digest))
    host = host_of(tmp_path / "root", grants={}, data=data, watch="reload")
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            rewrite(folder, "one in", "another in")
            edit_grants(
                data / "grants.toml", "notes", lambda entry: replace(entry, digest=digest_folder(folder).digest)
            )
            await recorder.until(lambda: bool(recorder.of(ExtensionReloaded)))
            assert (await notes.call_tool("which")).startswith("another in")


# -- what survives


@on_asyncio
async def test_memory_survives_the_end_of_a_host_and_its_death(root: Path, tmp_path: Path) -> None:
    with anyio.fail_after(60):
        for expected in ("1", "2"):
            async with host_of(root, grants={}, data=tmp_path / "data", ask=consent) as host:
                notes = await host.ready("notes")
                assert await notes.call_tool("keep", {"text": "milk"}) == expected
    assert (tmp_path / "data" / "audit.jsonl").stat().st_size > 0


async def test_a_host_whose_start_was_left_is_closed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ExtensionSet.run

    async def leave_and_run(self: ExtensionSet, started: anyio.Event, closing: anyio.Event) -> None:
        scope.cancel()
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        await run(self, started, closing)

    monkeypatch.setattr(ExtensionSet, "run", leave_and_run)
    with anyio.fail_after(60):
        with anyio.CancelScope() as scope:
            await host_of(root, data=tmp_path / "data").start()
        assert scope.cancelled_caught
        monkeypatch.undo()
        async with host_of(root, data=tmp_path / "data") as host:  # no process holds the store any more
            await host.ready("notes")


async def test_two_hosts_cannot_share_one_data_directory(root: Path, tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with host_of(root, data=tmp_path / "data"):
            with pytest.raises(StoreInUse):
                async with host_of(root, data=tmp_path / "data"):
                    pass


async def test_a_crash_is_reported_and_the_handle_continues_with_the_next_copy(root: Path) -> None:
    host = host_of(root)
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            with pytest.raises(PeerCrashed) as crash:
                await notes.call_tool("crash")
            assert crash.value.exit_code == 7
            await recorder.until(lambda: len(recorder.of(ExtensionRestarted)) == 1)
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"
            assert notes.restarts == 1


@on_asyncio
async def test_the_audit_records_how_often_an_extension_was_restarted(root: Path, tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with host_of(root, grants={}, data=tmp_path / "data", ask=consent) as host:
            notes = await host.ready("notes")
            for _ in range(2):
                with pytest.raises(PeerCrashed):
                    await notes.call_tool("crash")
                await host.ready("notes")
            await notes.reload()
    events = [one.event for one in read_audit(tmp_path / "data" / "audit.jsonl")]
    assert [event.restarts for event in events if isinstance(event, StartRecorded)] == [0, 1, 2, 2]


async def test_a_call_that_may_be_repeated_survives_a_kill(root: Path) -> None:
    with anyio.fail_after(60):
        async with host_of(root) as host:
            notes = await host.ready("notes")
            pid = host.status()[0].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            assert await notes.call_tool("keep", {"text": "milk"}, repeat=True) == "1"


async def test_a_process_that_hangs_is_killed_without_grace_and_started_again(root: Path) -> None:
    heartbeat = HeartbeatPolicy(every=0.05, slow_after=0.1, dead_after=1.5, stalled_after=60)
    supervision = SupervisionPolicy(restart=RestartPolicy(delay=0.01), heartbeat=heartbeat)
    patient = Limits(stdin_grace=3600, term_grace=3600)
    with anyio.fail_after(60):
        async with host_of(root, supervision=supervision, limits=patient) as host:
            recorder = EventRecorder(host)
            await host.ready("notes")
            pid = host.status()[0].pid
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
            await recorder.until(lambda: bool(recorder.of(ExtensionRestarted)))
            assert await host.call_tool("notes:keep", {"text": "milk"}) == "1"


async def test_a_tool_that_blocks_its_event_loop_is_ended_with_that_suspicion(tmp_path: Path) -> None:
    blocker = """
    import time

    class Blocker(ExtensionServer):
        id, version = "blocker", "1.0.0"

        @tool("Blocks.")
        async def block(self) -> None:
            time.sleep(600)

        @tool("Says that it is there.")
        async def hello(self) -> str:
            return "hello"

    Blocker().run()
    """
    write_extension(tmp_path, "blocker", blocker, ["tools.register"])
    heartbeat = HeartbeatPolicy(every=0.1, slow_after=0.5, dead_after=2.0, stalled_after=60)
    supervision = SupervisionPolicy(restart=RestartPolicy(delay=0.01), heartbeat=heartbeat)
    output = "did not respond to a ping for 2 s and was ended: does it block its event loop?"
    with anyio.fail_after(60):
        async with host_of(tmp_path, grants={"blocker": ["tools.register"]}, supervision=supervision) as host:
            recorder = EventRecorder(host)
            await host.ready("blocker")
            with pytest.raises(ConnectionLost) as lost:
                await host.call_tool("blocker:block")
            assert lost.value.detail == f"blocker {output}"
            assert await host.call_tool("blocker:hello") == "hello"
    assert [event.because for event in recorder.events if isinstance(event, ExtensionRestarting)] == [output]


@on_asyncio
async def test_a_permission_that_is_revoked_is_gone_at_once_and_for_good(root: Path, tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with host_of(root, data=tmp_path / "data") as host:
            taken: list[PermissionRevoked] = []
            host.on(PermissionRevoked)(taken.append)
            notes = await host.ready("notes")
            await host.revoke("notes", "memory.write")
            with pytest.raises(RemoteError):
                await notes.call_tool("keep", {"text": "milk"})
            await host.grant("notes", "memory.write")
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"
            assert [event.permission for event in taken] == ["memory.write"]
            await host.revoke("notes", "memory.write")
        async with host_of(root, data=tmp_path / "data") as host:
            notes = await host.ready("notes")
            with pytest.raises(RemoteError):
                await notes.call_tool("keep", {"text": "milk"})


async def test_a_revocation_that_cannot_be_written_holds_and_is_written_as_soon_as_it_can_be(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(becket.host.revocation_retry, "RETRY_EVERY", 0.02)
    data = tmp_path / "data"
    host = host_of(root, grants={}, data=data, ask=consent)
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            (data / "grants.toml.lock").unlink()
            (data / "grants.toml.lock").mkdir()  # the file cannot be locked, so it cannot be written
            with pytest.raises(RevocationNotPersistent) as failed:
                await host.revoke("notes", "memory.write")
            assert (failed.value.id, failed.value.permissions) == ("notes", ("memory.write",))
            with pytest.raises(RemoteError):
                await notes.call_tool("keep", {"text": "milk"})
            (status,) = host.status()
            assert status.not_persistent == ("memory.write",)
            assert "revocation not persistent: memory.write" in build_status_rows([status])[0][-1]
            (problem,) = [one for one in host.problems if "revocation not persistent" in one.problem]
            assert problem.extension == "notes"
            (data / "grants.toml.lock").rmdir()
            await recorder.until(lambda: problem not in host.problems)
            assert host.status()[0].not_persistent == ()
            assert load_grants(data / "grants.toml")["notes"].deny == ("memory.write",)
            assert recorder.events.count(ProblemFound(problem)) == 1


@on_asyncio
async def test_a_revocation_that_could_not_be_written_is_written_when_the_host_closes(
    root: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with anyio.fail_after(60):
        async with host_of(root, grants={}, data=data, ask=consent) as host:
            await host.ready("notes")
            (data / "grants.toml.lock").unlink()
            (data / "grants.toml.lock").mkdir()
            with pytest.raises(RevocationNotPersistent):
                await host.revoke("notes", "memory.write")
            (data / "grants.toml.lock").rmdir()
        assert "deny" in (data / "grants.toml").read_text(encoding="utf-8")
        assert not (data / "grants.toml.pending").exists()


@on_asyncio
async def test_a_revocation_that_was_never_written_to_the_grants_holds_in_the_next_host(
    root: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with anyio.fail_after(60):
        async with host_of(root, grants={}, data=data, ask=consent) as host:
            await host.ready("notes")
            (data / "grants.toml.lock").unlink()
            (data / "grants.toml.lock").mkdir()
            with pytest.raises(RevocationNotPersistent):
                await host.revoke("notes", "memory.write")
        assert "deny" not in (data / "grants.toml").read_text(encoding="utf-8")
        async with host_of(root, grants={}, data=data) as host:
            assert host.status()[0].not_persistent == ("memory.write",)
            with pytest.raises(RemoteError):
                await (await host.ready("notes")).call_tool("keep", {"text": "milk"})
            (data / "grants.toml.lock").rmdir()
            await host.grant("notes", "memory.write")
            assert await host.call_tool("notes:keep", {"text": "milk"}) == "1"
            assert host.status()[0].not_persistent == ()
        assert load_grants(data / "grants.toml")["notes"].deny == ()


PORTER = """
class Porter(ExtensionServer):
    id, version = "porter", "1.0.0"

    @tool("Opens a door.")
    async def open(self) -> bool:
        return await self.host.call("door/open", {}, returns=bool)

if __name__ == "__main__":
    Porter().run()
"""
DOORS = ["door.open", "tools.register"]


def doors() -> Registry:
    """Returns methods of a host that require a permission of its own."""
    methods = Registry()
    methods.handle(Method("door/open", dict[str, str], bool, requires="door.open"))(lambda params: True)
    return methods


@on_asyncio
async def test_a_permission_of_the_hosts_own_methods_is_granted_and_revoked_like_any_other(tmp_path: Path) -> None:
    write_extension(tmp_path / "root", "porter", PORTER, DOORS)
    data = tmp_path / "data"
    with anyio.fail_after(60):
        async with Host([tmp_path / "root"], grants={"porter": DOORS}, methods=doors(), data=data) as host:
            await host.ready("porter")
            assert await host.call_tool("porter:open") == "true"
            await host.revoke("porter", "door.open")
            with pytest.raises(RemoteError):
                await host.call_tool("porter:open")
        async with Host([tmp_path / "root"], methods=doors(), data=data) as host:
            await host.grant("porter", *DOORS)
            await host.ready("porter")
            assert await host.call_tool("porter:open") == "true"
        async with Host([tmp_path / "root"], methods=doors(), data=data) as host:
            await host.ready("porter")
            assert await host.call_tool("porter:open") == "true"


async def test_a_grant_during_the_start_check_starts_an_extension_that_the_check_refuses(tmp_path: Path) -> None:
    write_extension(tmp_path / "root", "porter", PORTER, DOORS)
    hosts: list[Host] = []

    async def grant_and_refuse(prompt: str, decision: Decision) -> bool:
        await hosts[0].grant("porter")
        return False

    host = Host([tmp_path / "root"], ask=grant_and_refuse, methods=doors(), data=tmp_path / "data")
    hosts.append(host)
    ready = anyio.Event()
    host.on(ExtensionStarted)(lambda event: ready.set())
    with anyio.fail_after(60):
        async with host:
            await ready.wait()
            assert await host.call_tool("porter:open") == "true"


def test_a_permission_that_no_method_of_the_host_requires_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownPermission):
        Host([tmp_path], grants={"porter": ["door.close"]}, methods=doors(), data=None)
    with pytest.raises(UnknownPermission):
        Host([tmp_path], grants={"porter": ["door.open"]}, data=None)


DEPUTY = """
import threading
from becket import RemoteError

class Deputy(ExtensionServer):
    id, version = "deputy", "1.0.0"

    @tool("Keeps a text in the worker of the tool.")
    def direct(self) -> str:
        return self.keep()

    @tool("Keeps a text in a thread of its own.")
    def detached(self) -> str:
        outcomes = []
        thread = threading.Thread(target=lambda: outcomes.append(self.keep()))
        thread.start()
        thread.join()
        return outcomes[0]

    def keep(self) -> str:
        try:
            self.host.blocking.memory.append("x")
        except RemoteError as error:
            return error.message
        return "kept"

if __name__ == "__main__":
    Deputy().run()
"""
CLERK = """
class Clerk(ExtensionServer):
    id, version = "clerk", "1.0.0"

    @tool("Has the deputy keep a text.")
    async def dictate(self, how: str) -> str:
        return await self.host.call("host/deputy", {"how": how}, returns=str)

if __name__ == "__main__":
    Clerk().run()
"""


@on_asyncio
@pytest.mark.parametrize("is_required", [False, True])
async def test_calls_on_behalf_of_others_without_a_parent_are_recorded_or_refused(
    tmp_path: Path, is_required: bool
) -> None:
    write_extension(tmp_path / "root", "deputy", DEPUTY, ["memory.write", "tools.register"])
    write_extension(tmp_path / "root", "clerk", CLERK, ["memory.write", "tools.register"])
    methods = Registry()
    data = tmp_path / "data"
    host = Host(
        [tmp_path / "root"], ask=consent, methods=methods, data=data, settings=HostSettings(require_parent=is_required)
    )

    @methods.handle("host/deputy")
    async def call_deputy(params: dict[str, str]) -> str:
        return await host.call_tool(f"deputy:{params['how']}")

    with anyio.fail_after(60):
        async with host:
            await host.ready("deputy")
            clerk = await host.ready("clerk")
            assert await clerk.call_tool("dictate", {"how": "direct"}) == "kept"
            refused = "permission denied: it names no parent"
            assert await clerk.call_tool("dictate", {"how": "detached"}) == (refused if is_required else "kept")
    calls = [one.event for one in read_audit(data / "audit.jsonl") if isinstance(one.event, CallDecided)]
    assert [(call.extension, call.handling, call.allowed) for call in calls] == [
        ("deputy", ("clerk",), not is_required)
    ]


@on_asyncio
async def test_hooks_and_models_of_all_extensions_are_offered_by_the_host(root: Path) -> None:
    hooks = '[[hooks]]\nhook = "before_tool_call"\n'
    write_extension(root, "guard", GUARD, GUARDING, hooks)
    with anyio.fail_after(60):
        async with host_of(root) as host:
            await host.ready("guard")
            verdict = await host.run_hooks(HookEvent.before_tool_call("bash", {"command": "rm -rf /"}))
            assert verdict.result == Block("no")
            assert verdict.by == "guard"
            assert host.models() == ("guard:local:small",)
            async with host.stream("guard:local:small", messages=[user("hi")]) as response:
                events = [event async for event in response]
            assert events[:2] == [TextDelta("hel"), TextDelta("lo")]
            assert (await response.result()).text == "hello"
            result = await host.complete("guard:local:small", messages=[user("hi")], use_tools=True)
            assert result.text == "hello"
            with pytest.raises(NotDeclared):
                await host.complete("guard:local:large", messages=[user("hi")])


@on_asyncio
async def test_an_untrusted_provider_is_not_called(root: Path, tmp_path: Path) -> None:
    write_extension(root, "guard", GUARD, GUARDING)
    data = tmp_path / "data"
    data.mkdir()
    (data / "trust.json").write_text('{"disabled":{"guard:local":{"disabled":true}}}', encoding="utf-8")
    with anyio.fail_after(60):
        async with host_of(root, grants={}, data=data, ask=consent) as host:
            await host.ready("guard")
            with pytest.raises(ProviderDisabled):
                await host.complete("guard:local:small", messages=[user("hi")])


async def test_an_extension_starts_after_its_requirement_and_stops_before_it(root: Path) -> None:
    write_extension(root, "early", NOTES.replace('"notes"', '"early"'), ["tools.register"], 'after = ["notes"]')
    host = host_of(root, grants={"notes": MEMORY, "early": ["tools.register"]})
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            await host.ready("early")
    started = [event.extension for event in recorder.events if isinstance(event, ExtensionStarted)]
    stopped = [event.extension for event in recorder.events if isinstance(event, ExtensionStopped)]
    assert (started, stopped) == (["notes", "early"], ["early", "notes"])


async def test_an_extension_restarts_when_its_requirement_does(root: Path) -> None:
    write_extension(root, "late", NOTES.replace('"notes"', '"late"'), ["tools.register"], 'after = ["notes"]')
    write_extension(root, "free", NOTES.replace('"notes"', '"free"'), ["tools.register"])
    host = host_of(root, grants={"notes": MEMORY, "late": REGISTERING, "free": REGISTERING})
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            await host.settled()
            with pytest.raises(PeerCrashed):
                await host.call_tool("notes:crash")
            await recorder.until(lambda: bool(recorder.of(ExtensionReloaded)))
            assert [event.extension for event in recorder.events if isinstance(event, ExtensionReloaded)] == ["late"]
            assert {status.state for status in host.status()} == {ExtensionState.READY}


async def test_a_host_that_was_not_started_has_no_extensions(root: Path) -> None:
    host = host_of(root)
    assert (host.status(), [*host]) == ((), [])
    assert "0 of 0" in repr(host)
    with pytest.raises(LocalProtocolError):
        host["notes"]


@on_asyncio
async def test_an_extension_with_a_missing_requirement_does_not_start(root: Path) -> None:
    write_extension(root, "lonely", NOTES.replace('"notes"', '"lonely"'), ["tools.register"], 'after = ["nobody"]')
    with anyio.fail_after(60):
        async with host_of(root, grants={"notes": MEMORY, "lonely": ["tools.register"]}) as host:
            with pytest.raises(ExtensionRefused):
                await host.ready("lonely")
            assert any("nobody" in problem.problem for problem in host.problems)


@on_asyncio
async def test_an_extension_that_declares_what_it_may_not_fails_with_the_rule(root: Path) -> None:
    write_extension(root, "bold", NOTES.replace('"notes"', '"bold"'), [])
    with anyio.fail_after(60):
        async with host_of(root) as host:
            with pytest.raises(BadCapabilities) as failed:
                await host.ready("bold")
            assert "tools.register" in str(failed.value)


@on_asyncio
async def test_another_program_is_put_in_front_of_each_command(root: Path) -> None:
    wrapped: list[str] = []

    def wrap(id: str, command: Sequence[str]) -> Sequence[str]:
        wrapped.append(id)
        return ["/usr/bin/env", "WRAPPED=1", *command]

    host = host_of(root, wrap=wrap)
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            with pytest.raises(PeerCrashed):
                await notes.call_tool("crash")
            await recorder.until(lambda: bool(recorder.of(ExtensionRestarted)))
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"
    assert wrapped == ["notes", "notes"]


@on_asyncio
async def test_only_the_selected_extensions_are_started(root: Path) -> None:
    write_extension(root, "guard", GUARD, GUARDING)
    host = host_of(root, only=["guard", "notes"], disabled=["notes"])
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            await host.ready("guard")
            assert [*host] == ["guard"]
    assert len(recorder.of(ExtensionDiscovered)) == 1


def add_line(file: Path, line: str) -> None:
    with file.open("a", encoding="utf-8") as lines:
        lines.write(f"{line}\n")


async def change_until(recorder: EventRecorder, kind: type[HostEvent], file: Path) -> None:
    """Changes a file, and again until this is reported: the first change may come before the watcher runs."""
    while not recorder.of(kind):
        add_line(file, "# changed")
        with anyio.move_on_after(1):
            await recorder.until(lambda: bool(recorder.of(kind)))


async def test_a_changed_file_reloads_its_extension_and_the_handle_stays(root: Path) -> None:
    host = host_of(root, watch="reload")
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            await change_until(recorder, ExtensionReloaded, root / "notes" / "main.py")
            assert recorder.of(ExtensionChanged)
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"


async def test_a_file_that_is_added_in_place_reloads_nothing(root: Path, tmp_path: Path) -> None:
    prompts: list[str] = []

    def agree_and_count(prompt: str, decision: Decision) -> bool:
        prompts.append(prompt)
        return True

    host = host_of(
        root,
        grants={},
        data=tmp_path / "data",
        ask=agree_and_count,
        watch="reload",
        only=["notes"],
        extensions={"notes": ExtensionConfig(in_place=True)},
    )
    recorder = EventRecorder(host)
    with anyio.fail_after(60):
        async with host:
            await host.ready("notes")
            await change_until(recorder, ExtensionChanged, root / "notes" / "state")
            await change_until(recorder, ExtensionReloaded, root / "notes" / "main.py")
            assert len(prompts) == 2


async def test_a_changed_file_does_not_start_a_stopped_extension(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = host_of(root, watch="reload")
    recorder = EventRecorder(host)
    reloads: list[str] = []
    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            await notes.stop()
            monkeypatch.setattr(notes.supervisor, "reload", lambda: reloads.append("notes"))
            await change_until(recorder, ExtensionChanged, root / "notes" / "main.py")
            await anyio.wait_all_tasks_blocked()
            assert (reloads, notes.state) == ([], ExtensionState.STOPPED)


async def test_a_host_can_be_closed_from_another_task_and_twice(root: Path) -> None:
    host = host_of(root)
    with anyio.fail_after(60):
        await host.start()
        await host.ready("notes")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.aclose)
            tasks.start_soon(host.aclose)
        assert host.status()[0].state is ExtensionState.STOPPED


async def test_a_host_that_was_not_started_closes_at_once(root: Path) -> None:
    await host_of(root).aclose()


async def test_a_broken_save_leaves_the_running_copy(root: Path) -> None:
    host = host_of(root, watch="reload")
    recorder = EventRecorder(host)
    main = root / "notes" / "main.py"
    sound = main.read_text(encoding="utf-8")
    with anyio.fail_after(60):
        async with host:
            notes = await host.ready("notes")
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"
            main.write_text("def broken(:\n", encoding="utf-8")
            await recorder.until(lambda: bool(recorder.of(ProblemFound)))
            assert "the running ones are kept" in str(recorder.of(ProblemFound)[0])
            assert await notes.call_tool("keep", {"text": "milk"}) == "2"
            main.write_text(f"{sound}# mended\n", encoding="utf-8")
            await recorder.until(lambda: bool(recorder.of(ExtensionReloaded)))
            assert notes.state is ExtensionState.READY
