"""A whole host: from folders to running extensions, what they offer together, and what survives."""

from __future__ import annotations

import os
import signal
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from becket.contract.hooks import Block, HookEvent
from becket.contract.providers import TextDelta, user
from becket.errors import (
    BadCapabilities,
    ExtensionRefused,
    NotDeclared,
    PeerCrashed,
    ProviderDisabled,
    RemoteError,
    StartFailed,
    StoreInUse,
)
from becket.host.events import (
    ExtensionChanged,
    ExtensionDiscovered,
    ExtensionReloaded,
    ExtensionRestarted,
    ExtensionStarted,
    ExtensionStopped,
    GrantTaken,
    HostEvent,
)
from becket.host.host import Host
from becket.host.lifecycle import Health, State
from becket.host.manifest import FILE_NAME
from becket.host.restart import RestartPolicy
from becket.host.supervisor import Care
from becket.methods.permissions import Decision

pytestmark = [pytest.mark.process, pytest.mark.loops]

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
QUICK = Care(restart=RestartPolicy(delay=0.01))


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
    return Host([root], **{"data": None, "grants": {"notes": MEMORY, "guard": GUARDING}, "care": QUICK, **options})


class Told:
    """The events of a host."""

    def __init__(self, host: Host) -> None:
        self.events: list[HostEvent] = []
        self._news = anyio.Event()
        host.events.subscribe(HostEvent, self._take)

    def _take(self, event: HostEvent) -> None:
        self.events.append(event)
        news, self._news = self._news, anyio.Event()
        news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._news.wait()

    def of(self, kind: type[HostEvent]) -> list[HostEvent]:
        return [event for event in self.events if isinstance(event, kind)]


async def test_an_extension_in_a_folder_is_found_started_and_called(root: Path) -> None:
    with anyio.fail_after(15):
        async with host_of(root) as host:
            notes = await host.ready("notes")
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"
            assert await host.call_tool("notes:keep", {"text": "eggs"}) == "2"
            assert [tool.name for tool in host.tools] == ["notes_keep", "notes_crash"]
            (status,) = host.status()
            assert (status.state, status.health, status.tools) == (State.READY, Health.RUNNING, 2)
            assert status.pid is not None
            assert status.figures.calls == 2
            assert "1 of 1" in repr(host)
    assert [tool.name for tool in host.tools] == []


async def test_one_bad_extension_does_not_disturb_the_others(root: Path) -> None:
    write_extension(root, "broken", "raise SystemExit('not today')", [])
    write_extension(root, "missing", NOTES, [], program="no-such-program")
    (root / "unreadable").mkdir()
    (root / "unreadable" / FILE_NAME).write_text("id = ", encoding="utf-8")
    with anyio.fail_after(15):
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
            assert states == {"notes": State.READY, "broken": State.FAILED, "missing": State.FAILED}
            assert {"broken", "missing"} <= {problem.extension for problem in host.problems}


async def test_an_extension_that_nobody_has_agreed_to_is_refused_and_says_what_to_do(root: Path) -> None:
    with anyio.fail_after(15):
        async with host_of(root, grants={}) as host:
            with pytest.raises(ExtensionRefused) as refused:
                await host.ready("notes")
            assert "memory.write" in refused.value.because
            assert "becket grant notes" in refused.value.because
            assert len(host.tools) == 0


async def test_a_person_agrees_once_and_it_is_written_down(root: Path, tmp_path: Path) -> None:
    questions: list[str] = []

    async def ask(question: str, decision: Decision) -> bool:
        questions.append(question)
        return True

    with anyio.fail_after(20):
        for _ in range(2):
            async with host_of(root, grants={}, data=tmp_path / "data", ask=ask) as host:
                notes = await host.ready("notes")
                await notes.call_tool("keep", {"text": "milk"})
    assert len(questions) == 1
    assert "memory.write" in questions[0]
    assert "memory.write" in (tmp_path / "data" / "grants.toml").read_text(encoding="utf-8")


async def test_changed_files_need_a_new_consent_unless_they_are_developed(root: Path, tmp_path: Path) -> None:
    def ask(question: str, decision: Decision) -> bool:
        return True

    with anyio.fail_after(20):
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


async def test_memory_survives_the_end_of_a_host_and_its_death(root: Path, tmp_path: Path) -> None:
    with anyio.fail_after(20):
        for expected in ("1", "2"):
            async with host_of(root, data=tmp_path / "data") as host:
                notes = await host.ready("notes")
                assert await notes.call_tool("keep", {"text": "milk"}) == expected
    assert (tmp_path / "data" / "audit.jsonl").stat().st_size > 0


async def test_two_hosts_cannot_keep_their_things_in_one_folder(root: Path, tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with host_of(root, data=tmp_path / "data"):
            with pytest.raises(StoreInUse):
                async with host_of(root, data=tmp_path / "data"):
                    pass


async def test_a_crash_is_told_and_the_handle_goes_on_with_the_next_copy(root: Path) -> None:
    host = host_of(root)
    told = Told(host)
    with anyio.fail_after(20):
        async with host:
            notes = await host.ready("notes")
            with pytest.raises(PeerCrashed) as crash:
                await notes.call_tool("crash")
            assert crash.value.exit_code == 7
            await told.until(lambda: len(told.of(ExtensionRestarted)) == 1)
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"
            assert notes.restarts == 1


async def test_a_call_that_may_be_repeated_survives_a_kill(root: Path) -> None:
    with anyio.fail_after(20):
        async with host_of(root) as host:
            notes = await host.ready("notes")
            pid = host.status()[0].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            assert await notes.call_tool("keep", {"text": "milk"}, repeat=True) == "1"


async def test_a_permission_that_is_revoked_is_gone_at_once_and_for_good(root: Path, tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with host_of(root, data=tmp_path / "data") as host:
            taken: list[GrantTaken] = []
            host.on(GrantTaken)(taken.append)
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


async def test_hooks_and_models_of_all_extensions_are_offered_by_the_host(root: Path) -> None:
    hooks = '[[hooks]]\nhook = "before_tool_call"\n'
    write_extension(root, "guard", GUARD, GUARDING, hooks)
    with anyio.fail_after(20):
        async with host_of(root) as host:
            await host.ready("guard")
            verdict = await host.ask_hooks(HookEvent.before_tool_call("bash", {"command": "rm -rf /"}))
            assert verdict.result == Block("no")
            assert verdict.by == "guard"
            assert host.models() == ("guard:local:small",)
            async with host.stream("guard:local:small", messages=[user("hi")]) as answer:
                events = [event async for event in answer]
            assert events[:2] == [TextDelta("hel"), TextDelta("lo")]
            assert (await answer.result()).text == "hello"
            result = await host.complete("guard:local:small", messages=[user("hi")], use_tools=True)
            assert result.text == "hello"
            with pytest.raises(NotDeclared):
                await host.complete("guard:local:large", messages=[user("hi")])


async def test_a_provider_that_is_not_trusted_is_not_asked(root: Path, tmp_path: Path) -> None:
    write_extension(root, "guard", GUARD, GUARDING)
    data = tmp_path / "data"
    data.mkdir()
    (data / "trust.json").write_text('{"disabled":{"guard:local":{"disabled":true}}}', encoding="utf-8")
    with anyio.fail_after(20):
        async with host_of(root, data=data) as host:
            await host.ready("guard")
            with pytest.raises(ProviderDisabled):
                await host.complete("guard:local:small", messages=[user("hi")])


async def test_one_that_needs_another_starts_after_it_and_stops_before_it(root: Path) -> None:
    write_extension(root, "early", NOTES.replace('"notes"', '"early"'), ["tools.register"], 'after = ["notes"]')
    host = host_of(root, grants={"notes": MEMORY, "early": ["tools.register"]})
    told = Told(host)
    with anyio.fail_after(20):
        async with host:
            await host.ready("early")
    started = [event.extension for event in told.events if isinstance(event, ExtensionStarted)]
    stopped = [event.extension for event in told.events if isinstance(event, ExtensionStopped)]
    assert (started, stopped) == (["notes", "early"], ["early", "notes"])


async def test_one_that_needs_what_is_not_there_does_not_start(root: Path) -> None:
    write_extension(root, "lonely", NOTES.replace('"notes"', '"lonely"'), ["tools.register"], 'after = ["nobody"]')
    with anyio.fail_after(20):
        async with host_of(root, grants={"notes": MEMORY, "lonely": ["tools.register"]}) as host:
            with pytest.raises(ExtensionRefused):
                await host.ready("lonely")
            assert any("nobody" in problem.problem for problem in host.problems)


async def test_one_that_declares_what_it_may_not_fails_with_the_rule(root: Path) -> None:
    write_extension(root, "bold", NOTES.replace('"notes"', '"bold"'), [])
    with anyio.fail_after(20):
        async with host_of(root) as host:
            with pytest.raises(BadCapabilities) as failed:
                await host.ready("bold")
            assert "tools.register" in str(failed.value)


async def test_only_some_and_not_others_are_started(root: Path) -> None:
    write_extension(root, "guard", GUARD, GUARDING)
    host = host_of(root, only=["guard", "notes"], disabled=["notes"])
    told = Told(host)
    with anyio.fail_after(20):
        async with host:
            await host.ready("guard")
            assert [*host] == ["guard"]
    assert len(told.of(ExtensionDiscovered)) == 1


async def test_a_changed_file_reloads_its_extension_and_the_handle_stays(root: Path) -> None:
    host = host_of(root, watch="reload")
    told = Told(host)
    with anyio.fail_after(20):
        async with host:
            notes = await host.ready("notes")
            main = root / "notes" / "main.py"
            text = main.read_text(encoding="utf-8")
            number = 0
            while not told.of(ExtensionReloaded):  # the first may come before anybody watches
                number += 1
                main.write_text(f"{text}# {number}\n", encoding="utf-8")
                with anyio.move_on_after(1):
                    await told.until(lambda: bool(told.of(ExtensionReloaded)))
            assert told.of(ExtensionChanged)
            assert await notes.call_tool("keep", {"text": "milk"}) == "1"


async def test_a_host_can_be_closed_from_another_task_and_twice(root: Path) -> None:
    host = host_of(root)
    with anyio.fail_after(20):
        await host.start()
        await host.ready("notes")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.aclose)
            tasks.start_soon(host.aclose)
        assert host.status()[0].state is State.STOPPED


async def test_a_host_that_was_not_started_closes_at_once(root: Path) -> None:
    await host_of(root).aclose()
