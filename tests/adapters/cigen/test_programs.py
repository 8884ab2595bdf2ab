"""Plugins of cigen hosted by becket, and plugins on becket driven by a core of cigen: real processes, whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from becket import ExtensionServer
from becket.adapters.cigen import (
    CIGEN,
    GENERATE,
    PLAN,
    CigenResource,
    CigenSchema,
    CigenSettings,
    Fragment,
    GenerateRequest,
    GenerateResult,
    JobDefinition,
    MergeStrategy,
    PlanRequest,
    PlanResult,
    PluginInfo,
    ResourceType,
    RunStep,
    Step,
)
from becket.errors import (
    CallTimeout,
    ConnectionLost,
    HandshakeFailed,
    LocalProtocolError,
    NotSupported,
    VersionMismatch,
)
from becket.extension import handles, tool
from becket.host import Host
from becket.host.extension import Extension
from becket.host.starting.connect import ExtensionConnector, connect_extension
from becket.testing import connected

EXAMPLES = Path(__file__).parents[3] / "examples" / "dialects" / "cigen"
INFO = b"\x0a\x0aprovider/x\x18\x01"  # a name and protocol 1
JOBS = (JobDefinition("build"), JobDefinition("test", ("build",), steps=(Step(run=RunStep(command="make test")),)))
SCHEMA = CigenSchema("1", jobs=JOBS)
MAKEFILE = "build:\ntest: build\n\tmake test\n"


def start(*command: str | Path, **options: Any) -> ExtensionConnector:
    return connect_extension([*command], dialect=CIGEN, **options)


def script(*responses: bytes, then: str = "", **options: Any) -> ExtensionConnector:
    """Starts a plugin that sends these responses, frame for frame, and then does something else."""
    code = f"""
import sys
def read():
    size = int.from_bytes(sys.stdin.buffer.read(4), "big")
    return sys.stdin.buffer.read(size)
def say(data): sys.stdout.buffer.write(data); sys.stdout.flush()
for answer in {[len(response).to_bytes(4, "big") + response for response in responses]!r}:
    read(); say(answer)
{then}
"""
    return start(sys.executable, "-c", code, id="script", **options)


async def plan_and_generate(plugin: Extension) -> GenerateResult:
    plan = await plugin.peer.call(PLAN, PlanRequest(schema=SCHEMA))
    return await plugin.peer.call(GENERATE, GenerateRequest("make", plan.resources, schema=SCHEMA))


# -- hosted


@pytest.mark.loops
@pytest.mark.process
async def test_a_plugin_in_plain_python_is_hosted() -> None:
    lines: list[str] = []
    async with start(sys.executable, EXAMPLES / "provider.py", on_stderr=lines.append) as plugin:
        assert [(one.kind, one.name) for one in plugin.capabilities] == [("provider", "make")]
        assert plugin.about is not None
        assert plugin.about.build is not None
        assert (plugin.about.build.backend, plugin.about.build.version) == ("provider/make", "0.1.0")
        for _ in range(2):  # plan and generate may alternate any number of times
            plan = await plugin.peer.call(PLAN, PlanRequest(schema=SCHEMA))
            assert plan.resources == (
                CigenResource("job:build", ResourceType.JOB),
                CigenResource("job:test", ResourceType.JOB),
            )
            made = await plugin.peer.call(GENERATE, GenerateRequest("make", plan.resources, schema=SCHEMA))
            assert made == GenerateResult((Fragment("Makefile", MAKEFILE, MergeStrategy.REPLACE, format="make"),))
    assert lines[:2] == ["provider/make: plan", "provider/make: generate"]


@pytest.mark.loops
@pytest.mark.process
async def test_the_status_shows_the_version_and_the_details_of_the_plugin(tmp_path: Path) -> None:
    program = tmp_path / "cigen-provider-make"
    info = (
        b"\x0a\x0dprovider/make\x12\x050.1.0\x18\x01\x22\x0dprovider:make"
        b"\x2a\x07lang/go\x32\x0eprovider/ninja\x3a\x0c\x0a\x04home\x12\x04here"
    )
    program.write_text(
        f"""#!{sys.executable}
import sys
sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big"))
sys.stdout.buffer.write({len(info).to_bytes(4, "big") + info!r})
sys.stdout.flush()
sys.stdin.read()
""",
        encoding="utf-8",
    )
    program.chmod(0o755)
    with anyio.fail_after(60):
        async with Host([tmp_path], grants={"cigen-provider-make": []}, data=None) as host:
            await host.ready("cigen-provider-make")
            (status,) = host.status()

    assert status.version == "0.1.0"
    assert status.plugin == {
        "name": "provider/make",
        "version": "0.1.0",
        "protocol": 1,
        "capabilities": ["provider:make"],
        "requires": ["lang/go"],
        "conflicts_with": ["provider/ninja"],
        "metadata": {"home": "here"},
    }


@pytest.mark.process
async def test_generate_before_plan_is_refused_and_nothing_was_sent() -> None:
    async with start(sys.executable, EXAMPLES / "provider.py") as plugin:
        with pytest.raises(LocalProtocolError, match="`plan` is next"):
            await plugin.peer.call(GENERATE, GenerateRequest())
        with pytest.raises(NotSupported, match="detect"):
            await plugin.peer.call("detect")
        assert await plugin.info() == plugin.about  # no other request is possible
        plan = await plugin.peer.call(PLAN, PlanRequest())
        assert [error.code for error in plan.errors] == ["MAKE_001"]


@pytest.mark.process
async def test_calls_wait_for_each_other() -> None:
    results: list[Any] = []
    async with start(sys.executable, EXAMPLES / "provider.py") as plugin:

        async def call(method: Any, params: Any) -> None:
            results.append(await plugin.peer.call(method, params))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, PLAN, PlanRequest(schema=SCHEMA))
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(call, GENERATE, GenerateRequest(schema=SCHEMA))
    assert [type(result) for result in results] == [PlanResult, GenerateResult]


@pytest.mark.process
async def test_hello_has_the_variables_of_the_process() -> None:
    code = """
import sys
size = int.from_bytes(sys.stdin.buffer.read(4), "big")
hello = sys.stdin.buffer.read(size)
print("MARK" in hello.decode(errors="replace"), file=sys.stderr, flush=True)
sys.stdout.buffer.write(b"\\0\\0\\0\\x0e\\x0a\\x0aprovider/x\\x18\\x01"); sys.stdout.flush()
sys.stdin.read()
"""
    for settings, received in ((None, "True"), (CigenSettings(sends_environment=False), "False")):
        lines: list[str] = []
        command = [sys.executable, "-c", code]
        async with connect_extension(
            command, id="x", dialect=CIGEN, env={"MARK": "1"}, on_stderr=lines.append, extra=settings
        ):
            pass
        assert lines == [received]


@pytest.mark.process
@pytest.mark.parametrize(
    ("response", "error", "text"),
    [
        (b"\x0a\x01x\x18\x02", VersionMismatch, "core=1, plugin=2"),
        (b"", VersionMismatch, "core=1, plugin=0"),
        (b"\x18\x01", HandshakeFailed, "no name"),
        (b"\xff", HandshakeFailed, "not a valid PluginInfo"),
    ],
)
async def test_an_invalid_plugin_is_refused(response: bytes, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        await script(response, then="sys.stdin.read()")


@pytest.mark.process
@pytest.mark.parametrize(
    ("then", "text"),
    [
        ("read(); say(bytes([0, 160, 0, 1]))", "too large: 10485761 bytes"),
        ("read(); say(bytes([0, 0, 0, 2, 10, 9]))", "not a valid PlanResult"),
        ("read(); say(bytes([0, 0, 0, 9, 10]))", "truncated body"),
        ("read(); say(bytes([0, 0]))", "truncated length"),
        ("read(); say(bytes(8)); sys.stdin.read()", "a message after the PlanResult"),
        ("read(); sys.exit(3)", "exit code 3"),
    ],
)
async def test_a_protocol_error_of_a_plugin_ends_its_link(then: str, text: str) -> None:
    async with script(INFO, then=then) as plugin:
        with pytest.raises(ConnectionLost) as caught:
            await plan_and_generate(plugin)
        assert text in str(caught.value)


@pytest.mark.process
async def test_a_call_that_gets_no_response_in_time_fails_and_the_next_must_wait_for_its_response() -> None:
    async with script(INFO, then="read(); sys.stdin.buffer.read(1); sys.stdin.read()") as plugin:
        with pytest.raises(CallTimeout):
            await plugin.peer.call(PLAN, PlanRequest(), timeout=0.05)
        with pytest.raises(LocalProtocolError, match="`plan` has no response yet"):
            await plugin.peer.call(GENERATE, GenerateRequest())


@pytest.mark.process
async def test_messages_of_no_bytes_are_messages() -> None:
    async with script(INFO, b"", b"") as plugin:
        assert await plugin.peer.call(PLAN, PlanRequest()) == PlanResult()
        assert await plugin.peer.call(GENERATE, GenerateRequest()) == GenerateResult()


@pytest.mark.process
async def test_a_large_file_is_delivered_and_a_larger_one_is_not_sent() -> None:
    async with start(sys.executable, EXAMPLES / "provider.py") as plugin:
        commands = "x" * 9_000_000
        schema = CigenSchema("1", jobs=(JobDefinition("a", steps=(Step(run=RunStep(command=commands)),)),))
        await plugin.peer.call(PLAN, PlanRequest(schema=schema))
        made = await plugin.peer.call(GENERATE, GenerateRequest("make", schema=schema))
        assert len(made.fragments[0].content) == 9_000_000 + len("a:\n\t\n")
        too_large = PlanRequest(facts={"a": "x" * 11_000_000})
        with pytest.raises(LocalProtocolError, match="the limit is 10485760"):
            await plugin.peer.call(PLAN, too_large)


@pytest.mark.loops
@pytest.mark.process
async def test_a_folder_of_plugins_is_run(tmp_path: Path) -> None:
    for name in ("cigen-provider-make", "provider.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    async with Host([tmp_path], data=None) as host:
        await host.ready("cigen-provider-make")
        (candidate,) = host.report.candidates
        assert candidate.manifest.dialect == "cigen"
        assert "cigen-provider-make" in [status.id for status in host.status()]


# -- serving


def drive(*command: str | Path, jobs: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EXAMPLES / "mini_host.py", *command],
        input=jobs,
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=True,
        env=os.environ | variables,
    )


@pytest.mark.process
def test_a_plugin_on_becket_serves_a_core_of_cigen() -> None:
    done = drive(sys.executable, EXAMPLES / "served.py", jobs="build test\n\ndeploy\n")

    assert done.stdout.splitlines() == [
        "plugin: provider/listing 1.0.0",
        "capabilities: provider:listing",
        "plan: job:build job:test",
        "file: jobs.md '- build\\n- test\\n'",
        "error: LIST_001 the schema has no jobs",
        "plan:",
        "error: INTERNAL internal error",
        "plan: job:deploy",
        "file: jobs.md '- deploy\\n'",
        "exit: 0",
    ]
    assert "a secret of the implementation" in done.stderr


@pytest.mark.process
def test_a_plugin_on_becket_refuses_a_core_of_another_protocol() -> None:
    done = drive(sys.executable, EXAMPLES / "served.py", CORE_PROTOCOL="2")

    assert done.stdout.splitlines()[0] == "refused: Protocol version mismatch: core=2, plugin=0"


PLAIN = """
from becket.adapters.cigen import GENERATE, PLAN, Fragment, GenerateRequest, GenerateResult, PlanRequest, PlanResult
from becket.extension import ExtensionServer, handles

class Plain(ExtensionServer):
    id, version = "plain", "1.0.0"

    @handles(PLAN)
    def plan(self, request: PlanRequest) -> PlanResult:
        return PlanResult()

    @handles(GENERATE)
    def generate(self, request: GenerateRequest) -> GenerateResult:
        return GenerateResult((Fragment("a", request.target),))

Plain().run()
"""


@pytest.mark.process
def test_a_plugin_without_coroutines_serves_a_core_of_cigen() -> None:
    done = drive(sys.executable, "-c", PLAIN, jobs="build\ntest\n")

    turn = ["plan:", "file: a 'listing'"]
    assert done.stdout.splitlines() == ["plugin: provider/plain 1.0.0", "capabilities:", *turn, *turn, "exit: 0"]


@pytest.mark.process
def test_protobuf_is_not_imported_before_a_link_needs_it() -> None:
    code = "import sys; from becket.adapters.cigen import CIGEN; print(CIGEN.name, 'google.protobuf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=100, check=True)

    assert done.stdout == "cigen False\n"


class Sketch(ExtensionServer):
    id, version = "sketch", "2.0.0"

    @tool("Nobody can call it here.")
    async def draw(self) -> str:
        return "drawn"

    @handles(PLAN)
    async def plan(self, request: PlanRequest) -> PlanResult:
        return PlanResult((CigenResource(request.facts.get("id", "")),))

    @handles(GENERATE)
    def generate(self, request: GenerateRequest) -> GenerateResult:
        return GenerateResult((Fragment("a", request.target),))


@pytest.mark.loops
async def test_host_and_extension_communicate_in_memory() -> None:
    async with connected(Sketch(), dialect=CIGEN) as (sketch, _):
        assert await sketch.peer.call(PLAN, PlanRequest(facts={"id": "x"})) == PlanResult((CigenResource("x"),))
        made = await sketch.peer.call(GENERATE, GenerateRequest("there"))
        assert made == GenerateResult((Fragment("a", "there"),))
        assert sketch.about is not None
        assert sketch.tools == ()


async def test_the_identity_of_a_plugin_is_stored() -> None:
    async with connected(Sketch(), dialect=CIGEN) as (sketch, _):
        assert sketch.extra == PluginInfo("provider/sketch", "2.0.0", 1)
