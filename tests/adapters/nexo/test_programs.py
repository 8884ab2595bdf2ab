"""Programs of nexo that know nothing of becket, hosted by it; and a small host of nexo that drives one on becket."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from anyio import fail_after

import becket
from becket.adapters import nexo
from becket.adapters.nexo.manifest_reader import READER
from becket.contract.hooks import Block, Continue, HookEvent, HookKind, Inject, Modify
from becket.errors import HandshakeFailed, NotSupported, RemoteError, StartFailed
from becket.host import Extension, Host, connect_extension
from becket.host.events import ExtensionRestarted
from becket.host.host_settings import group_arguments
from becket.host.restart import RestartPolicy
from becket.host.supervision_policy import SupervisionPolicy
from becket.methods.registry import Registry

PROGRAMS = Path(__file__).parents[3] / "examples" / "dialects" / "nexo"
WEATHER = [sys.executable, str(PROGRAMS / "weather" / "weather.py")]
HOOKS = ["tools.register", "tools.intercept", "privacy.llm_content"]
AGENTS_LIST = nexo.admin_method("agents/list", "agents_crud", dict[str, Any], dict[str, Any])
PASSTHROUGH = nexo.NexoManifest(passthrough=True)

pytestmark = pytest.mark.process


def host_methods() -> Registry:
    """Returns what an extension may request."""
    methods = Registry()

    @methods.handle(AGENTS_LIST)
    def list_agents(params: dict[str, Any]) -> dict[str, Any]:
        return {"agents": ["ana"], "asked": params}

    return methods


def tick(config: dict[str, Any], cursor: str | None = None) -> nexo.PollTickParams:
    return nexo.PollTickParams("rain", "job", "ana", cursor, config, "2026-05-04T10:00:00+00:00")


# -- an extension of that system


@pytest.mark.loops
async def test_the_tools_of_a_program_are_called_and_its_errors_are_mapped() -> None:
    with fail_after(60):
        async with connect_extension(WEATHER, dialect="nexo", grants=["tools.register"]) as weather:
            assert [tool.name for tool in weather.tools] == ["forecast", "whoami", "agents"]
            assert weather.about is not None
            assert weather.about.build is not None
            assert weather.about.build.version == "weather-0.1.0"

            forecast = await weather.call_tool_json("forecast", {"city": "Bogotá"})
            listed = await weather.peer.call(nexo.TOOLS_LIST, {})
            with pytest.raises(RemoteError) as refused:
                await weather.peer.call("tools/call", {"name": "forecast", "arguments": {}})

    assert forecast == {"city": "Bogotá", "sky": "grey", "temperature": 17}
    assert [tool.name for tool in nexo.to_tools(listed)] == ["forecast", "whoami", "agents"]
    assert (refused.value.code, refused.value.message) == (-32602, "missing required field 'city'")


@pytest.mark.loops
async def test_calls_that_nexo_lacks_are_refused_before_anything_is_sent() -> None:
    with fail_after(60):
        async with connect_extension(WEATHER, dialect="nexo", grants=["session.lifecycle"]) as weather:
            with pytest.raises(NotSupported):
                async with weather.invoke_command("tidy"):
                    pass
            with pytest.raises(NotSupported):
                await weather.handle_hook(HookEvent.on_session_start("s"))
            with pytest.raises(NotSupported):
                await weather.sidecar_args()


@pytest.mark.loops
async def test_the_hooks_of_a_program_are_called_through_the_contract(caplog: pytest.LogCaptureFixture) -> None:
    async def ask(weather: Extension, event: HookEvent) -> Any:
        return await weather.handle_hook(event)

    with fail_after(60), caplog.at_level(logging.WARNING, "becket.host"):
        async with connect_extension(WEATHER, dialect="nexo", grants=HOOKS) as weather:
            hooks = weather.hooks
            calm = await ask(weather, HookEvent.before_message("hello"))
            warned = await ask(weather, HookEvent.before_message("is a storm coming?"))
            blocked = await ask(weather, HookEvent.before_tool_call("bash", {"command": "open umbrella"}))
            changed = await ask(weather, HookEvent.before_tool_call("bash", {"command": "sun"}))
            late = await ask(weather, HookEvent.after_tool_call("bash", {}, "done"))

    assert hooks == (HookKind.BEFORE_MESSAGE, HookKind.BEFORE_TOOL_CALL, HookKind.AFTER_TOOL_CALL)
    assert (calm, warned) == (Continue(), Inject("A storm is coming."))
    assert (blocked, changed) == (Block("never open one indoors"), Modify({"command": "rain"}))
    assert late == Continue()
    output = caplog.text
    assert "on_sunrise" in output
    assert "not allowed for after_tool_call" in output


@pytest.mark.loops
async def test_the_pollers_of_a_program_are_called_and_fail_as_declared() -> None:
    with fail_after(60):
        async with connect_extension(WEATHER, dialect="nexo") as weather:
            tools = nexo.decode_poller_tools(
                await weather.peer.call(nexo.POLL_LIST_TOOLS, nexo.PollListToolsParams("rain"))
            )
            first = await weather.peer.call(nexo.POLL_TICK, tick({"city": "Bogotá"}))
            second = await weather.peer.call(nexo.POLL_TICK, tick({"city": "Bogotá"}, first.next_cursor))
            call = nexo.PollToolCallParams("rain", "rain_status", {"id": "job"})
            status = await weather.peer.call(nexo.POLL_TOOL_CALL, call)
            faults: list[nexo.PollFailure] = []
            for config in ({}, {"city": "Atlantis"}, {"city": "Avalon"}):
                with pytest.raises(RemoteError) as failed:
                    await weather.peer.call(nexo.POLL_TICK, tick(config))
                faults.append(nexo.classify_failure(failed.value))

    assert [tool.name for tool in tools] == ["rain_status"]
    assert nexo.decode_cursor(first.next_cursor) == b"1"
    assert second.deliver == (nexo.Delivery("telegram", "42", {"text": "rain in Bogotá, #2"}),)
    assert status == {"kind": "rain", "tool": "rain_status", "args": {"id": "job"}}
    assert faults == [nexo.PollFailure.CONFIG, nexo.PollFailure.PERMANENT, nexo.PollFailure.TRANSIENT]


@pytest.mark.loops
async def test_a_program_may_call_its_host_within_its_grants() -> None:
    permission = nexo.to_permission("agents_crud")
    with fail_after(60):
        async with connect_extension(
            WEATHER, dialect="nexo", grants=["tools.register", permission], methods=host_methods()
        ) as weather:
            response = await weather.call_tool_json("agents")
            weather.gate.revoke(permission)
            with pytest.raises(RemoteError) as denied:
                await weather.call_tool("agents")

    assert response == {"agents": ["ana"], "asked": {"active_only": True}}
    assert denied.value.code == -32004
    assert "capability_not_granted" in denied.value.message


@pytest.mark.loops
async def test_a_caller_cannot_forge_the_session_that_the_host_sends() -> None:
    forged = {"_meta": {"agent_id": "mallory"}}
    meta = nexo.build_session_meta("ana", "s-1", channel="whatsapp", account_id="p")
    with fail_after(60):
        async with connect_extension(
            WEATHER, dialect="nexo", grants=["tools.register"], extra=PASSTHROUGH, schemas="off"
        ) as weather:
            received = await weather.call_tool_json("whoami", forged, meta=meta)
            alone = await weather.call_tool_json("whoami", forged)

    assert received["session"] == meta
    assert alone["session"] == {"agent_id": "becket", "session_id": None}


async def test_shutdown_has_the_reason() -> None:
    lines: list[str] = []
    with fail_after(60):
        weather = await connect_extension(WEATHER, dialect="nexo", on_stderr=lines.append)
        await weather.shutdown("config reload\n")

    assert lines == ["weather ends: config reload"]


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ('print(\'{"id":0,"error":{"code":-32000,"message":"no key"}}\'); input()', HandshakeFailed),
        ('print(\'{"id":0,"result":{"tools":7}}\'); input()', HandshakeFailed),
        ("raise SystemExit(3)", StartFailed),
    ],
    ids=["refused", "undecodable", "ended"],
)
async def test_a_start_that_fails_is_reported(program: str, error: type[Exception]) -> None:
    with fail_after(60), pytest.raises(error):
        await connect_extension([sys.executable, "-uc", program], id="bad", dialect="nexo")


async def test_an_interpreter_that_is_missing_is_named(tmp_path: Path) -> None:
    program = tmp_path / "main.py"
    program.write_text("#!/usr/bin/no-such-python\n", encoding="utf-8")
    program.chmod(0o755)

    with pytest.raises(StartFailed) as caught:
        await connect_extension([program], id="bad", dialect="nexo")

    assert "/usr/bin/no-such-python" in caught.value.because


# -- a host of becket


def lay_out(folder: Path, *names: str) -> Path:
    for name in names:
        copytree(PROGRAMS / name, folder / name)
    return folder


def host_of(folder: Path, data: Path | None = None, **options: Any) -> Host:
    grants: Mapping[str, list[str]] = {"weather": HOOKS, "lamp": ["tools.register"]}
    return Host([folder], grants=grants, data=data, **group_arguments(options))


@pytest.mark.loops
async def test_a_host_finds_and_runs_programs_of_nexo_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEATHER_MOOD", "fair")
    monkeypatch.setenv("WEATHER_API_KEY", "hidden")
    folder = lay_out(tmp_path / "extensions", "weather", "lamp")
    with fail_after(60):
        async with host_of(folder, tmp_path / "data") as host:
            await host.ready("weather")
            await host.ready("lamp")
            shown = {tool["name"]: tool["description"] for tool in host.tools.for_model()}
            switched = await host.call_tool("ext_lamp_switch")
            again = await host.call_tool("lamp:switch")
            about = json.loads(await host.call_tool("ext_weather_whoami", meta=nexo.build_session_meta("ana", "s-1")))
            verdict = await host.run_hooks(HookEvent.before_tool_call("bash", {"command": "umbrella"}))

    assert shown["ext_lamp_switch"] == "[ext:lamp] Switches the lamp."
    assert [*shown] == ["ext_lamp_switch", "ext_weather_agents", "ext_weather_forecast", "ext_weather_whoami"]
    assert (switched, again) == ('{"lamp":"on"}', '{"lamp":"off"}')
    assert about == {
        "session": {"agent_id": "ana", "session_id": "s-1"},
        "id": "weather",
        "version": becket.__version__,
        "has_state": True,
        "folder": "weather",
        "secrets": [],  # neither is requested
    }
    assert (verdict.result, verdict.by) == (Block("never open one indoors"), "weather")


async def test_a_crashed_program_is_started_again(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "extensions", "weather")
    supervision = SupervisionPolicy(restart=RestartPolicy(delay=0.01, first_is_immediate=True, jitter=0.0))
    restarts: list[ExtensionRestarted] = []
    with fail_after(60):
        async with host_of(folder, supervision=supervision) as host:
            host.events.subscribe(ExtensionRestarted, restarts.append)
            weather = await host.ready("weather")
            with pytest.raises(ConnectionError):
                await host.call_tool("ext_weather_forecast", {"city": "Atlantis"})
            response = await weather.call_tool_json("forecast", {"city": "Bogotá"})

    assert response["sky"] == "grey"
    assert len(restarts) == 1


def test_the_manifests_of_the_programs_are_read() -> None:
    for name in ("weather", "lamp"):
        path = PROGRAMS / name / "plugin.toml"
        assert READER.read(path.read_bytes(), str(path)).manifest.id == name


# -- an extension of becket


def test_a_host_of_nexo_drives_an_extension_of_becket() -> None:
    program = [sys.executable, str(PROGRAMS / "mini_host.py"), sys.executable, str(PROGRAMS / "served.py")]
    done = subprocess.run(program, capture_output=True, check=True, timeout=100, encoding="utf-8")
    output = [(name, value) for name, value in map(json.loads, done.stdout.splitlines())]
    responses = dict(output)

    assert responses["initialize"]["server_version"] == "1.0.0"
    assert responses["initialize"]["hooks"] == ["before_message", "after_message", "before_tool_call"]
    assert responses["tools/list"]["tools"] == responses["initialize"]["tools"]
    assert [value for name, value in output if name in ("tools/call", "slow")] == [
        3,
        "quick",
        "at last",
        {"failed": [-32602, "invalid params: /input/b: is missing"]},
        "s-1",
        "ana",
        "-32004 capability_not_granted "
        "{'capability': 'reload', 'microapp_id': 'served', 'method': 'nexo/admin/reload'}",
    ]
    assert [value for name, value in output if name.startswith("hooks/")] == [
        {"abort": True, "reason": "no"},
        {"abort": False},
        {"abort": False, "override": {"text": "hello\n\nIt rains."}},
        {"abort": False},
    ]
    ticks = [value for name, value in output if name == "poll_tick"]
    assert [value.get("items_seen", value.get("failed")) for value in ticks] == [
        1,
        2,
        [-32602, "no city to watch"],
        [-32002, "it has sunk"],
    ]
    assert responses["poll_tool_call"] == {"tool": "rain_status", "args": {"id": "j"}}
    assert responses["no/such/method"]["failed"][0] == -32601
    assert (responses["shutdown"], responses["exit"]) == ({"ok": True}, 0)
    assert "passed over" not in responses
