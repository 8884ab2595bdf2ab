"""Programs of Roder that know nothing of becket, hosted by it; and a small host of Roder that drives one on becket."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from typing import Any

import anyio
import pytest
from anyio import fail_after

from becket.adapters import roder
from becket.adapters.roder.manifest_reader import READER
from becket.contract.commands import CommandEvent, ErrorText, SystemText, Text
from becket.contract.providers import ProviderDone, TextDelta, ThinkingDelta, ToolUse, Usage, user
from becket.errors import (
    BecketError,
    CallTimeout,
    HandshakeFailed,
    NotSupported,
    RemoteError,
    StartFailed,
    VersionMismatch,
)
from becket.host import Extension, Host, HostSettings, connect_extension
from becket.host.events import ExtensionFailed
from becket.host.starting.connect import ExtensionConnector
from becket.host.starting.discovery import DiscoverySettings
from becket.methods.registry import Registry

PROGRAMS = Path(__file__).parents[3] / "examples" / "dialects" / "roder"
WORKSHOP = PROGRAMS / "workshop" / "roder-extension.toml"
COUNT = {"name": "word_count", "description": "d", "input_schema": {"type": "object"}}

pytestmark = pytest.mark.process


def loaded(manifest: Path = WORKSHOP) -> roder.LoadedManifest:
    extra: roder.LoadedManifest = READER.read(manifest.read_bytes(), str(manifest)).extra
    return extra


def workshop(**more: Any) -> ExtensionConnector:
    """Returns the workshop, to be connected as its manifest says."""
    options: dict[str, Any] = {"grants": ["tools.register", "providers.register"], "extra": loaded()}
    command = [sys.executable, WORKSHOP.parent / "workshop.py"]
    return connect_extension(command, id="workshop", dialect="roder", **(options | more))


def dispatch(prompt: str, **more: Any) -> roder.DispatchParams:
    request = roder.SubagentRequest(description="Work", prompt=prompt, **more)
    return roder.DispatchParams(
        dispatcher_id="workshop-agents",
        dispatch_id=f"d-{prompt}",
        parent_thread_id="t",
        parent_turn_id="u",
        request=request,
    )


# -- an extension of that system


@pytest.mark.loops
async def test_the_tools_of_a_program_are_called_and_fail_with_their_messages() -> None:
    with fail_after(60):
        async with workshop() as shop:
            names = [tool.name for tool in shop.tools]
            counted = await shop.call_tool("word_count", {"text": "one two three"})
            data = await shop.call_tool_json("word_count", {"text": "one"})
            with pytest.raises(RemoteError) as failed:
                await shop.call_tool("divide", {"a": 1, "b": 0})

    assert names == ["word_count", "divide"]
    assert counted == "3 words"
    assert data == {"content": "1 words", "data": {"words": 1}}
    assert failed.value.message == "nothing can be divided by 0"


@pytest.mark.loops
async def test_the_models_of_a_program_respond_whole_and_in_deltas() -> None:
    with fail_after(60):
        async with workshop() as shop:
            [provider] = shop.providers
            whole = await shop.complete("workshop-models", "sage-7b", messages=[user("say it")])
            async with shop.stream("workshop-models", "parrot", messages=[user("a b")], tools=[COUNT]) as response:
                events = [event async for event in response]
                result = await response.result()
            with pytest.raises(RemoteError) as failed:
                await shop.complete("workshop-models", "parrot", messages=[user("fail")])

    assert [(model.id, model.context_window) for model in provider.models] == [("parrot", 4096), ("sage-7b", None)]
    assert whole.text == "say it "
    assert whole.usage == {"prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11}
    assert events[:5] == [
        ThinkingDelta("they want me to "),
        ThinkingDelta("repeat it"),
        ToolUse("t1", "word_count", {"text": "a b"}),
        TextDelta("a "),
        TextDelta("b "),
    ]
    assert isinstance(events[5], Usage)
    assert isinstance(events[6], ProviderDone)
    assert (result.text, result.stop_reason) == ("a b ", "stop")
    assert failed.value.message == "the parrot is asleep"


@pytest.mark.loops
async def test_two_concurrent_responses_stay_separate() -> None:
    texts: dict[str, str] = {}

    async def ask(shop: Extension, printed: str) -> None:
        async with shop.stream("workshop-models", "parrot", messages=[user(printed)]) as response:
            texts[printed] = (await response.result()).text

    with fail_after(60):
        async with workshop() as shop, anyio.create_task_group() as tasks:
            for printed in ("one", "two", "three"):
                tasks.start_soon(ask, shop, printed)

    assert texts == {"one": "one ", "two": "two ", "three": "three "}


@pytest.mark.loops
async def test_the_executors_of_a_program_are_commands() -> None:
    with fail_after(60):
        async with workshop() as shop:
            async with shop.invoke_command("build", ["desk", "shelf"]) as run:
                output: list[CommandEvent] = [event async for event in run]
                result = await run.result()
            async with shop.invoke_command("build", ["nothing"]) as run:
                with pytest.raises(RemoteError) as failed:
                    await run.result()

    assert output[:-1] == [SystemText("2 to build"), Text("built desk"), Text("built shelf"), ErrorText("one warning")]
    assert result == {"built": ["desk", "shelf"]}
    assert failed.value.message == "there is nothing to build"


@pytest.mark.loops
async def test_an_abandoned_command_is_cancelled_and_its_output_preserved() -> None:
    kept, methods = roder.ExtensionEventBuffer(), Registry()
    is_received = anyio.Event()

    @methods.on(roder.EXTENSION_EVENT)
    def take(event: roder.RoderExtensionEvent) -> None:
        kept.add(event)
        is_received.set()

    with fail_after(60):
        async with workshop(methods=methods) as shop:
            async with shop.invoke_command("build", ["forever"]) as run:
                async for event in run:
                    assert event == SystemText("working")
                    break
            await is_received.wait()

    [received] = kept.drain()
    assert (received.event_kind, received.payload) == ("workshop.cancelled", {"executionId": "run-1"})


@pytest.mark.loops
async def test_the_tasks_and_agents_of_a_program_are_used_by_their_own_methods() -> None:
    with fail_after(60):
        async with workshop() as shop:
            spec = (await shop.peer.call(roder.TASKS_SPEC, roder.TaskSpecParams("build"))).spec
            run = roder.ExecuteTaskParams(executor_id="build", execution_id="e", task_id="k", input={"args": ["a"]})
            async with shop.peer.stream(roder.TASKS_EXECUTE, run) as execution:
                built = await execution.result()
            requested = roder.ListDefinitionsParams("workshop-agents")
            [agent] = (await shop.peer.call(roder.SUBAGENTS_DEFINITIONS, requested)).definitions
            async with shop.peer.stream(roder.SUBAGENTS_DISPATCH, dispatch("sweep")) as work:
                events = [event async for event in work]
                done = await work.result()
            async with shop.peer.stream(roder.SUBAGENTS_DISPATCH, dispatch("fail")) as work:
                with pytest.raises(RemoteError) as failed:
                    await work.result()

    assert (spec.kind, spec.metadata) == ("build", None)
    assert built == roder.TaskResult(exit_code=0, payload={"built": ["a"]})
    assert (agent.agent_type, agent.permission_mode) == ("apprentice", roder.SubagentPermissionMode.READ_ONLY)
    assert events[0] == roder.SubagentStatus("RUNNING", "at the bench")
    assert (done.final_message, done.exit_reason) == ("done: sweep", roder.SubagentExitReason.COMPLETED)
    assert failed.value.message == "subagent dispatcher workshop-agents failed: it broke"


@pytest.mark.loops
async def test_a_dispatch_that_takes_too_long_is_cancelled_with_the_reason() -> None:
    is_received = anyio.Event()
    methods = Registry()

    @methods.on(roder.EXTENSION_EVENT)
    def take(event: roder.RoderExtensionEvent) -> None:
        assert event.payload == {"executionId": "d-forever"}
        is_received.set()

    with fail_after(60):
        async with workshop(methods=methods) as shop:
            async with shop.peer.stream(roder.SUBAGENTS_DISPATCH, dispatch("forever"), timeout=0.05) as work:
                with pytest.raises(CallTimeout):
                    await work.result()
            await is_received.wait()


@pytest.mark.loops
async def test_a_program_gets_the_events_that_its_filter_allows() -> None:
    heard: list[Any] = []
    is_received = anyio.Event()
    methods = Registry()

    @methods.on(roder.EXTENSION_EVENT)
    def take(event: roder.RoderExtensionEvent) -> None:
        heard.append(event.payload)
        is_received.set()

    with fail_after(60):
        async with workshop(methods=methods) as shop:
            offer: roder.RoderOffer = shop.extra
            for number, kind in enumerate(("tool.call_started", "turn.started")):
                envelope = roder.EventEnvelope(
                    event_id=f"v{number}",
                    seq=number,
                    timestamp="2026-01-01T00:00:00Z",
                    source=roder.EventSource.CORE,
                    kind=kind,
                    event={},
                )
                if offer.accepts_event(kind):
                    with fail_after(roder.FORWARD_TIMEOUT):
                        await shop.peer.notify(roder.EVENTS_HANDLE, roder.EventsHandleParams(envelope))
            await is_received.wait()

    assert heard == [{"kinds": ["turn.started"]}]


@pytest.mark.loops
async def test_calls_that_roder_lacks_are_refused_before_anything_is_sent() -> None:
    with fail_after(60):
        async with workshop() as shop:
            with pytest.raises(NotSupported):
                await shop.sidecar_args()
            with pytest.raises(NotSupported):
                await shop.open_editor("c", "f")


async def test_the_services_of_a_program_without_a_manifest_come_from_its_response() -> None:
    with fail_after(60):
        async with workshop(extra=None) as shop:
            assert [tool.name for tool in shop.tools] == ["word_count", "divide"]
            assert [one.kind for one in shop.capabilities] == ["task_executor", "subagent_dispatcher", "event_sink"]


async def test_a_program_with_another_manifest_than_its_host_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "roder-extension.toml"
    other.write_bytes(WORKSHOP.read_bytes() + b"# drift\n")

    with fail_after(60), pytest.raises(HandshakeFailed, match="the child is running against a different manifest"):
        await workshop(extra=loaded(other))


# -- programs that do odd things

ODD = """
import json, sys
def say(message): print(json.dumps(message), flush=True)
services = [{"type": "tool_provider", "id": "t", "tools": [
    {"name": "odd", "description": "d", "parameters": {"type": "object"}}]}]
for line in sys.stdin:
    message = json.loads(line)
    id, method = message["id"], message["method"]
    if method == "extension/initialize":
        say({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": VERSION, "extensionId": "odd",
             "services": services, "manifestChecksum": ""}})
    elif method == "tools/call":
        print("a line that was meant for stderr")
        print("x" * (4 * 1024 * 1024 + 1))
        print("y" * (20 * 1024 * 1024))
        print()
        say({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {}})
        say({"jsonrpc": "2.0", "id": id, "result": {"content": "still here", "isError": False}})
    else:
        say({"jsonrpc": "2.0", "id": id, "result": {}})
        break
"""


def odd(version: str = "0.2.0", **more: Any) -> ExtensionConnector:
    program = ODD.replace("VERSION", repr(version))
    return connect_extension([sys.executable, "-c", program], id="odd", dialect="roder", **more)


@pytest.mark.loops
async def test_overlong_and_invalid_lines_are_skipped() -> None:
    with fail_after(60):
        async with odd(grants=["tools.register"]) as program:
            assert await program.call_tool("odd") == "still here"
            assert await program.call_tool("odd") == "still here"


async def test_a_program_of_an_older_version_is_refused() -> None:
    with fail_after(60), pytest.raises(VersionMismatch) as caught:
        await odd("0.1.0")

    assert caught.value.given == "0.1.0"


async def test_a_program_that_ends_at_once_is_reported_with_its_stderr() -> None:
    program = "import sys; sys.stderr.write('no key\\n'); sys.exit(3)"

    with fail_after(60), pytest.raises(StartFailed) as caught:
        await connect_extension([sys.executable, "-c", program], id="bad", dialect="roder")

    assert (caught.value.exit_code, "no key" in caught.value.stderr_tail) == (3, True)


# -- a host of becket


def lay_out(folder: Path, *names: str) -> Path:
    for name in names:
        copytree(PROGRAMS / name, folder / name)
    return folder


@pytest.mark.loops
async def test_a_host_finds_a_program_in_a_folder_and_starts_it(tmp_path: Path) -> None:
    folder = lay_out(tmp_path, "workshop")
    with fail_after(60):
        async with Host([folder], grants={"workshop": ["tools.register", "providers.register"]}, data=None) as host:
            await host.ready("workshop")
            counted = await host.call_tool("workshop:word_count", {"text": "a b"})
            response = await host.complete("workshop:workshop-models:parrot", messages=[user("hello there")])

    assert counted == "2 words"
    assert response.text == "hello there "


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
async def test_a_program_in_node_is_found_and_started(tmp_path: Path) -> None:
    folder = lay_out(tmp_path, "dice")
    with fail_after(60):
        async with Host([folder], grants={"dice": ["tools.register"]}, data=None) as host:
            await host.ready("dice")
            rolled = await host.call_tool("dice:roll", {"sides": 1, "times": 3})

    assert rolled == "rolled 3"


async def test_a_configuration_of_roder_determines_how_a_program_is_started(tmp_path: Path) -> None:
    lay_out(tmp_path / "extensions", "workshop")
    (tmp_path / ".roder").mkdir()
    (tmp_path / ".roder" / "config.toml").write_text(
        '[[process_extensions]]\nid = "any"\nmanifest = "extensions/workshop/roder-extension.toml"\n'
        'command = "python3"\nargs = ["workshop.py"]\ncwd = "extensions/workshop"\nenv = { WORKSHOP_MOOD = "merry" }\n',
        encoding="utf-8",
    )
    settings = DiscoverySettings(depth=2)

    with fail_after(60):
        grants = {"workshop": ["tools.register", "providers.register"]}
        async with Host([tmp_path], grants=grants, data=None, settings=HostSettings(discovery=settings)) as host:
            await host.ready("workshop")
            assert await host.call_tool("workshop:word_count", {"text": "a"}) == "1 words"


@pytest.mark.loops
async def test_a_program_that_was_killed_is_not_restarted(tmp_path: Path) -> None:
    folder = lay_out(tmp_path, "workshop")
    is_over = anyio.Event()
    with fail_after(60):
        async with Host([folder], grants={"workshop": ["tools.register", "providers.register"]}, data=None) as host:

            @host.on(ExtensionFailed)
            def note(failed: ExtensionFailed) -> None:
                is_over.set()

            await host.ready("workshop")
            [status] = host.status()
            assert status.pid is not None
            os.kill(status.pid, 9)
            await is_over.wait()

            assert host.status()[0].restarts == 0
            with pytest.raises(BecketError):
                await host["workshop"].call_tool("word_count", {"text": "a"})


# -- a host of that system


def drive(manifest: Path, program: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROGRAMS / "mini_host.py", manifest, sys.executable, program]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=100, check=False)


def test_a_small_host_of_roder_uses_all_services_of_an_extension_on_becket() -> None:
    ran = drive(PROGRAMS / "served" / "roder-extension.toml", PROGRAMS / "served" / "served.py")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == (Path(__file__).parent / "served.txt").read_text(encoding="utf-8").splitlines()


def test_the_same_host_uses_all_services_of_the_workshop() -> None:
    ran = drive(WORKSHOP, WORKSHOP.parent / "workshop.py")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "shutdown {}"


def test_an_extension_refuses_to_start_with_a_manifest_that_does_not_match_it(tmp_path: Path) -> None:
    manifest = tmp_path / "roder-extension.toml"
    text = (PROGRAMS / "served" / "roder-extension.toml").read_text(encoding="utf-8")
    manifest.write_text(text.replace('id = "tidy"', 'id = "sweep"'), encoding="utf-8")

    ran = drive(manifest, PROGRAMS / "served" / "served.py")

    assert ran.returncode != 0
    sentence = "roder-extension.toml and the class of the extension do not agree"
    assert f'refused "served: {sentence}: the file lists the command `sweep`, which the class has not' in ran.stdout
    assert sentence in ran.stderr


PLAIN = """
from becket.contract.providers import Model, ProviderRequest, ProviderResult
from becket.extension import BlockingCommandOutput, BlockingProviderStream, ExtensionServer, command, provider, tool


class Plain(ExtensionServer):
    id, version = "plain", "1.0.0"

    @tool("Says it loudly.")
    def shout(self, text: str) -> str:
        return text.upper()

    @provider("local", models=[Model("small")], display_name="Local", description="Says hello.")
    def answer(self, request: ProviderRequest, out: BlockingProviderStream) -> ProviderResult:
        out.text("hel")
        out.text("lo")
        return ProviderResult.of_text("hello")


if __name__ == "__main__":
    Plain().run()
"""
PLAIN_MANIFEST = """
id = "plain"
name = "Plain"
version = "1.0.0"
api_version = "*"
provides = [
  { type = "tool_provider", id = "tools", tools = [
    { name = "shout", description = "d", parameters = { type = "object" } },
  ] },
  { type = "inference_engine", id = "local" },
]
"""


def test_a_program_without_an_event_loop_serves_a_host_of_roder_too(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN, encoding="utf-8")
    (tmp_path / "roder-extension.toml").write_text(PLAIN_MANIFEST, encoding="utf-8")

    ran = drive(tmp_path / "roder-extension.toml", tmp_path / "plain.py")

    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert 'shout {"content": "QUIET", "isError": false}' in lines
    assert lines[5:8] == [
        'inference/event {"MessageDelta": {"text": "hel"}}',
        'inference/event {"MessageDelta": {"text": "lo"}}',
        'inference/event {"Completed": {"provider_response_id": null, "stop_reason": null}}',
    ]


PATIENT = """
import threading
from becket import RpcError
from becket.blocking import BlockingContext
from becket.adapters import roder
from becket.extension import ExtensionServer, handles


class Patient(ExtensionServer):
    id, version = "patient", "1.0.0"

    @handles(roder.SUBAGENTS_DISPATCH)
    def work(self, params: roder.DispatchParams, ctx: BlockingContext) -> roder.SubagentResult:
        status = roder.SubagentStatus("RUNNING")
        ctx.notify(roder.SUBAGENTS_EVENT, roder.SubagentEventParams(params.dispatch_id, status))
        while not ctx.is_cancelled:
            threading.Event().wait(0.01)
        ctx.notify(roder.EXTENSION_EVENT, roder.RoderExtensionEvent(
            extension_id=self.id, event_kind="seen", schema_version=1, payload=params.dispatch_id))
        raise RpcError(1, "given up")


if __name__ == "__main__":
    Patient().run()
"""


async def test_a_program_without_an_event_loop_sees_that_its_call_was_cancelled(tmp_path: Path) -> None:
    (tmp_path / "patient.py").write_text(PATIENT, encoding="utf-8")
    received: list[Any] = []
    is_received = anyio.Event()
    methods = Registry()

    @methods.on(roder.EXTENSION_EVENT)
    def take(event: roder.RoderExtensionEvent) -> None:
        received.append(event.payload)
        is_received.set()

    command = [sys.executable, str(tmp_path / "patient.py")]
    with fail_after(60):
        async with connect_extension(command, dialect="roder", methods=methods) as patient:
            async with patient.peer.stream(roder.SUBAGENTS_DISPATCH, dispatch("forever")) as work:
                async for _event in work:
                    break
            await is_received.wait()

    assert received == ["d-forever"]
