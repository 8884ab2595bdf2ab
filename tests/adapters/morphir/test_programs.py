"""Programs of Morphir hosted by becket, and extensions on becket driven by a host of Morphir: real processes, whole."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from becket import ExtensionServer
from becket.adapters.morphir import HEALTH_CHECK, MORPHIR, MorphirHealth, MorphirHealthStatus, MorphirSettings
from becket.errors import BadValue, CallTimeout, HandshakeFailed, NotDeclared, NotSupported, PeerCrashed, RemoteError
from becket.extension import handles, tool
from becket.host import Host, HostSettings
from becket.host.starting.connect import ExtensionConnector, connect_extension
from becket.testing import connected

EXAMPLES = Path(__file__).parents[3] / "examples" / "dialects" / "morphir"
TOOLS = ["tools.register"]


def start(*command: str | Path, **options: Any) -> ExtensionConnector:
    return connect_extension([*command], dialect=MORPHIR, grants=TOOLS, inherit_env=True, **options)


def script(text: str, **options: Any) -> ExtensionConnector:
    """Starts a small extension of Morphir: `answers` has its responses by method, raw lines too."""
    code = f"""
import json, sys
def say(line): print(line if isinstance(line, str) else json.dumps(line), flush=True)
def answer(method, number, params):
    if method == "initialize": return say({{"id": number, "result": {{"status": "ready"}}}})
    if method == "capabilities": return say({{"id": number, "result": [{{"name": "go", "description": "Goes."}}]}})
{text}
for line in sys.stdin:
    request = json.loads(line)
    answer(request["method"], request["id"], request["params"])
"""
    return start(sys.executable, "-c", code, id="script", **options)


# -- hosted


@pytest.mark.loops
@pytest.mark.process
async def test_a_program_in_plain_python_is_hosted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with start(sys.executable, EXAMPLES / "validator.py", config={"style": "loose"}) as validator:
        assert [tool.name for tool in validator.tools] == ["validate", "transform", "forget"]
        model = {"ir": {"modules": [{"name": "Good"}, {"name": "bad"}]}}
        result = await validator.call_tool_json("validate", model)
        assert result == {"valid": False, "errors": ["module bad should begin in upper case"]}
        assert await validator.call_tool_json("forget") is None
        assert (await validator.info()).capabilities[0].name == "healthy"
        assert await validator.peer.call(HEALTH_CHECK) == MorphirHealth(MorphirHealthStatus.HEALTHY)

        with pytest.raises(BadValue):
            await validator.call_tool("validate", {})
        with pytest.raises(NotDeclared):
            await validator.call_tool("fly")
        with pytest.raises(RemoteError, match="Unknown method: fly"):
            await validator.peer.call("fly", 17)
        with pytest.raises(RemoteError) as caught:
            await validator.call_tool("validate", {"ir": {"modules": [{}]}})
        assert caught.value.message == "KeyError: 'name'"
    assert "looking through 2 modules" in caplog.text


@pytest.mark.process
async def test_calls_run_concurrently_and_begin_with_the_id_2() -> None:
    code = """
    if method == "go" and params["n"] == 1: return held.append(number)
    if method == "go": say({"id": number, "result": number}); say({"id": held.pop(), "result": "late"})
held = []
"""
    results: list[Any] = []

    async with script(code) as extension:

        async def call(n: int) -> None:
            results.append(await extension.call_tool_json("go", {"n": n}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, 1)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(call, 2)
    assert results == [3, "late"]


@pytest.mark.process
async def test_noise_on_stdout_is_skipped() -> None:
    code = """
    say("Loading..."); say("{oops"); say([1]); say({"id": number, "method": "ask"})
    say({"id": number, "result": None, "error": None})
"""
    async with script(code) as extension:
        assert await extension.call_tool_json("go") is None


@pytest.mark.process
async def test_an_extension_that_fails_to_initialize_is_refused() -> None:
    with pytest.raises(HandshakeFailed, match="no such style: wild"):
        await start(sys.executable, EXAMPLES / "validator.py", config={"style": "wild"})


@pytest.mark.process
async def test_an_extension_without_a_list_of_capabilities_is_refused() -> None:
    code = "import sys\nfor n, line in enumerate(sys.stdin): print('{\"id\":%d}' % n, flush=True)"
    with pytest.raises(HandshakeFailed, match="no list of capabilities"):
        await start(sys.executable, "-c", code, id="script")


@pytest.mark.process
async def test_a_call_that_gets_no_response_fails_and_the_others_continue() -> None:
    code = '    if params: say({"id": number, "result": "back"})\n'
    async with script(code) as extension:
        with pytest.raises(CallTimeout):
            await extension.call_tool("go", timeout=0.05)
        assert await extension.call_tool("go", {"n": 1}) == "back"


@pytest.mark.process
async def test_a_program_that_ends_fails_the_calls_that_wait_for_it() -> None:
    async with script("    print('no more', file=sys.stderr); sys.exit(3)\n") as extension:
        with pytest.raises(PeerCrashed) as caught:
            await extension.call_tool("go")
        assert caught.value.exit_code == 3


@pytest.mark.process
async def test_calls_that_morphir_lacks_are_refused_before_anything_is_sent() -> None:
    async with start(sys.executable, EXAMPLES / "validator.py") as validator:
        with pytest.raises(NotSupported, match="morphir"):
            async with validator.invoke_command("x"):
                pass
        assert (await validator.call_tool_json("transform"))["result"] == {}


@pytest.mark.loops
@pytest.mark.process
async def test_a_list_of_extensions_is_run(tmp_path: Path) -> None:
    for name in ("morphir.toml", "validator.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    async with Host([tmp_path], grants={"validator": TOOLS}, data=None) as host:
        await host.ready("validator")
        result = await host.call_tool("validator:validate", {"ir": {}})
        assert result == '{"valid":true,"errors":[]}'
        assert {candidate.id for candidate in host.report.candidates} == {"validator"}


ABOUT_ITSELF = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    tools = [{"name": "tell", "description": "Tells where it runs, and with what."}]
    about = {"cwd": os.getcwd(), "env": dict(os.environ), "config": config if request["id"] else None}
    config = request["params"] if request["id"] == 0 else config
    result = {"initialize": {"status": "ready"}, "capabilities": tools}.get(request["method"], about)
    print(json.dumps({"id": request["id"], "result": result}), flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("dialects", [(), ("morphir",)])
async def test_an_extension_runs_beside_its_list_with_its_own_variables_or_with_all_if_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialects: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OF_THE_HOST", "1")
    (tmp_path / "about.py").write_text(ABOUT_ITSELF, encoding="utf-8")
    source = 'source = { type = "process", command = "python3", args = ["./about.py"], env = { OWN = "2" } }'
    listed = f'[[extensions]]\nname = "about"\n{source}\nconfig = {{ depth = 3, rules = ["a"] }}\n'
    (tmp_path / "morphir.toml").write_text(listed, encoding="utf-8")
    async with Host(
        [tmp_path], grants={"about": TOOLS}, data=None, settings=HostSettings(inherit_environment=dialects)
    ) as host:
        await host.ready("about")
        received = json.loads(await host.call_tool("about:tell", {}))
    assert received["cwd"] == str(tmp_path)
    assert (received["env"].get("OF_THE_HOST"), received["env"]["OWN"]) == ("1" if dialects else None, "2")
    assert received["config"] == {"depth": 3, "rules": ["a"]}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(180)
async def test_a_program_in_go_is_hosted(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("there is no Go compiler")
    program = tmp_path / "transformer"
    # Without optimisation: where nothing is in Go's cache, the standard library is compiled, too.
    command = ["go", "build", "-gcflags=all=-N -l", "-o", str(program), "main.go"]
    await anyio.run_process(command, cwd=EXAMPLES / "transformer", env={**os.environ, "GOFLAGS": "-mod=mod"})

    async with start(program, id="transformer") as transformer:
        model = {"ir": {"modules": [{"name": "b"}, {"name": "a"}]}}
        sorted_modules = {"transformed": True, "modules": [{"name": "a"}, {"name": "b"}]}
        assert await transformer.call_tool_json("transform", model) == sorted_modules
        assert await transformer.call_tool_json("reset") is None
        with pytest.raises(RemoteError, match="invalid IR structure"):
            await transformer.call_tool("transform", {"ir": 3})


# -- serving


@pytest.mark.process
def test_an_extension_on_becket_serves_a_host_of_morphir() -> None:
    calls = """\
count {"ir":{"modules":[{"name":"a"}]}}
!oops, this is no request
fly
remember {"text":"x"}
reset
fail
health_check
count {"ri":1}
"""
    done = subprocess.run(
        [sys.executable, EXAMPLES / "mini_host.py", sys.executable, EXAMPLES / "served.py"],
        input=calls,
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=True,
    )

    *lines, incident, health, misfit, end = done.stdout.splitlines()
    assert lines == [
        "log: info counting in a dense style",
        'initialize: {"status": "ready"}',
        "capability: count - Counts the modules of a model.",
        "capability: remember - Remembers nothing: there is no memory here.",
        "capability: reset - Answers with nothing.",
        "capability: fail - Fails.",
        'count: {"modules": 1}',
        "fly: error Unknown method: fly",
        'remember: "`memory.append` is not supported: the dialect `morphir` does not define it"',
        "reset: null",
    ]
    assert incident.startswith("fail: error internal error, incident ")
    assert incident.rpartition(" ")[2] in done.stderr
    assert health == 'health_check: {"status": "degraded", "message": "it only counts"}'
    assert misfit.startswith("count: error invalid params: /ir")
    assert end == "exit: 0"


@pytest.mark.process
@pytest.mark.parametrize(
    ("line", "response"),
    [
        ('{"id":2,"method":"capabilities","params":{}}', '{"id":2,"result":[{"name":"count",'),
        ('{"id":1,"method":"initialize","params":{"config":{"style":"loose"}}}', '{"method":"log","params":{'),
    ],
)
def test_an_extension_can_be_tried_by_hand(line: str, response: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "served.py"],
        input=line + "\n",
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=True,
    )

    assert done.stdout.startswith(response)


PLAIN = """
from becket.extension import ExtensionServer, tool

class Plain(ExtensionServer):
    id, version = "plain", "1.0.0"

    def on_start(self) -> None:
        self.host.log("started", level="warning")

    @tool("Counts letters.")
    def count(self, text: str) -> int:
        return len(text)

Plain().run()
"""


@pytest.mark.process
def test_an_extension_without_coroutines_serves_a_host_of_morphir() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "mini_host.py", sys.executable, "-c", PLAIN],
        input='count {"text":"four"}\nhealth_check\nfly\n',
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=True,
    )

    assert done.stdout.splitlines() == [
        "log: warn started",
        'initialize: {"status": "ready"}',
        "capability: count - Counts letters.",
        "count: 4",
        'health_check: {"status": "healthy"}',
        "fly: error Unknown method: fly",
        "exit: 0",
    ]


class Echo(ExtensionServer):
    id, version = "echo", "1.0.0"

    @tool("Says it again.")
    async def echo(self, text: str) -> str:
        return f"{text} in {self.config['style']}"

    @tool("Says it again, without a loop.")
    def echo_plainly(self, text: str) -> str:
        return text

    @handles(HEALTH_CHECK)
    async def health(self) -> MorphirHealth:
        return MorphirHealth(MorphirHealthStatus.UNHEALTHY, "hoarse")


@pytest.mark.loops
async def test_host_and_extension_communicate_in_memory() -> None:
    settings = MorphirSettings(config={"style": "dense"})
    async with connected(Echo(), grants=TOOLS, dialect=MORPHIR, extra=settings) as (echo, _):
        assert await echo.call_tool("echo", {"text": "hi"}) == "hi in dense"
        assert await echo.call_tool("echo_plainly", {"text": "hi"}) == "hi"
        assert await echo.peer.call(HEALTH_CHECK) == MorphirHealth(MorphirHealthStatus.UNHEALTHY, "hoarse")
        assert (await echo.info()).capabilities[0].modes == ("hoarse",)
