"""One host runs extensions of six dialects at once, under load, while one of each crashes: the others do not notice."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import pytest

from becket.adapters import cigen
from becket.errors import BecketError, ConnectionLost
from becket.host import Host, HostSettings, RestartPolicy, SupervisionPolicy
from becket.host.extension import Extension

pytestmark = [pytest.mark.process, pytest.mark.loops]

CALLS = 60  # of each extension, so many at once as its dialect allows
MIDDLE = 20  # where one of each dialect crashes, while all others are at the same call
STARTS_AGAIN = {"native": True, "synaps": True, "nexo": True, "roder": False, "morphir": False, "cigen": False}

# -- programs without becket, one for each kind of lines

COMMON = """
import json, os, sys
name = os.path.basename(os.path.dirname(os.path.abspath(__file__)))

def run(input):
    if input.get("crash"):
        os._exit(7)
    return input["text"] + "!"
"""

HEADERS = (
    COMMON
    + """
def read():
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.partition(b":")[2])
    if not length:
        sys.exit()
    return json.loads(sys.stdin.buffer.read(length))

def answer(asked, result):
    body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
    sys.stdout.buffer.flush()

TOOL = {"name": "exclaim", "description": "Adds a mark.", "input_schema": {"type": "object"}}
while True:
    asked = read()
    match asked["method"]:
        case "initialize":
            answer(asked, {"protocol_version": 1, "capabilities": {"tools": [TOOL]}})
        case "tool.call":
            answer(asked, run(asked["params"]["input"]))
        case "info.get":
            answer(asked, {})
        case "shutdown":
            answer(asked, None)
            break
"""
)

LINES = (
    COMMON
    + """
def checksum(data):
    number = 0xCBF29CE484222325
    for byte in data:
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return f"{number:016x}"

def welcome(params):
    if "agent_version" in params:  # nexo
        return {"tools": [{"name": "exclaim", "description": "Adds a mark."}]}
    return {"status": "ready"}  # morphir

def introduce(params):  # roder
    import tomllib
    data = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "roder-extension.toml"), "rb").read()
    services = tomllib.loads(data.decode())["provides"]
    return {"protocolVersion": "0.2.0", "extensionId": params["extensionId"], "services": services,
            "manifestChecksum": checksum(data)}

METHODS = {
    "initialize": welcome,
    "extension/initialize": introduce,
    "capabilities": lambda params: [{"name": "exclaim", "description": "Adds a mark."}],
    "exclaim": run,  # morphir
    "shutdown": lambda params: None,
    "extension/shutdown": lambda params: {},
}

def call(params):
    result = run(params["arguments"])
    return {"content": result, "isError": False} if "toolName" in params else result

METHODS["tools/call"] = call
for line in sys.stdin:
    asked = json.loads(line)
    result = METHODS[asked["method"]](asked.get("params"))
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    if asked["method"].endswith("shutdown"):
        break
"""
)

LENGTHS = """#!/usr/bin/env python3
import os, sys

def read():
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        sys.exit()
    return sys.stdin.buffer.read(int.from_bytes(head, "big"))

def write(body):
    sys.stdout.buffer.write(len(body).to_bytes(4, "big") + body)
    sys.stdout.buffer.flush()

read()
write(b"\\x0a\\x0aprovider/x\\x18\\x01")  # a name, and protocol 1
while True:
    if b"crash" in read():
        os._exit(7)
    write(b"")  # a plan without anything, or nothing generated
"""

RODER_MANIFEST = """
id = "ID"
name = "ID"
version = "1.0.0"
api_version = "^0.1"
provides = [
  { type = "tool_provider", id = "tools", tools = [
    { name = "exclaim", description = "Adds a mark.", parameters = { type = "object" } },
  ] },
]
[launch]
command = "python3"
args = ["program.py"]
"""


def write_all(root: Path) -> list[str]:
    """Writes a steady extension and one that crashes for each dialect, as each system has them; returns their ids."""
    ids: list[str] = []
    listed = ""
    for role in ("steady", "victim"):
        own = {
            "native": {
                "becket.toml": f'id = "native-{role}"\nversion = "1.0.0"\ncommand = ["python3", "program.py"]\n'
                'permissions = ["tools.register"]\n',
            },
            "synaps": {
                ".synaps-plugin/plugin.json": '{"name": "x", "version": "1.0.0", "extension": {"runtime": "process", '
                '"command": "python3", "args": ["program.py"], "permissions": ["tools.register"]}}',
            },
            "nexo": {
                "plugin.toml": f'[plugin]\nid = "nexo-{role}"\nversion = "1.0.0"\n[capabilities]\ntools = ["exclaim"]\n'
                '[transport]\nkind = "stdio"\ncommand = "python3"\nargs = ["program.py"]\n',
            },
            "roder": {"roder-extension.toml": RODER_MANIFEST.replace("ID", f"roder-{role}")},
        }
        for dialect, files in own.items():
            program = HEADERS if dialect in ("native", "synaps") else LINES
            for name, text in {**files, "program.py": program}.items():
                write(root / f"{dialect}-{role}" / name, text)
        write(root / "project" / f"{role}.py", LINES)
        listed += f'[[extensions]]\nname = "morphir-{role}"\n'
        listed += f'source = {{ type = "process", command = "python3", args = ["./{role}.py"] }}\n'
        write(root / f"cigen-provider-{role}", LENGTHS).chmod(0o755)
        ids += [*(f"{dialect}-{role}" for dialect in (*own, "morphir")), f"cigen-provider-{role}"]
    write(root / "project" / "morphir.toml", listed)
    return sorted(ids)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# -- the load


class Meeting:
    """A barrier for so many tasks."""

    def __init__(self, size: int) -> None:
        self._missing = size
        self._is_complete = anyio.Event()

    async def come(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._is_complete.set()
        await self._is_complete.wait()


class Load:
    """Calls one extension repeatedly, and counts the outcomes. In the middle it waits for all others."""

    def __init__(self, extension: Extension, middle: Meeting, *, crashes: bool) -> None:
        self.right = 0
        self.errors: list[BecketError] = []
        self._extension = extension
        self._middle = middle
        self._crashes = crashes
        self._is_cigen = extension.id.startswith("cigen")

    async def run(self) -> None:
        """Makes all calls: a few at a time, or one after the other where the dialect requires it."""
        numbers = iter(range(CALLS))

        async def work() -> None:
            for number in numbers:
                if number == MIDDLE:
                    await self._middle.come()
                await self._call(number)

        async with anyio.create_task_group() as tasks:
            for _ in range(1 if self._is_cigen else 8):
                tasks.start_soon(work)

    async def _call(self, number: int) -> None:
        try:
            is_right = await (self._plan(number) if self._is_cigen else self._exclaim(number))
        except BecketError as error:
            self.errors.append(error)
        else:
            assert is_right
            self.right += 1

    async def _exclaim(self, number: int) -> bool:
        crash = self._crashes and number == MIDDLE
        return await self._extension.call_tool("exclaim", {"text": str(number), "crash": crash}) == f"{number}!"

    async def _plan(self, number: int) -> bool:
        peer = self._extension.peer
        assert peer is not None
        if number % 2:
            return await peer.call(cigen.GENERATE, cigen.GenerateRequest()) == cigen.GenerateResult()
        flags = {"crash": "yes"} if self._crashes and number == MIDDLE else {}
        return await peer.call(cigen.PLAN, cigen.PlanRequest(flags=flags)) == cigen.PlanResult()


async def test_extensions_of_all_dialects_run_at_once_and_crashes_affect_no_other(tmp_path: Path) -> None:
    ids = write_all(tmp_path)
    path = f"{os.path.dirname(shutil.which('python3') or '')}{os.pathsep}{os.environ['PATH']}"
    supervision = SupervisionPolicy(restart=RestartPolicy(delay=0.02, longest_delay=0.02, jitter=0.0), heartbeat=None)
    grants = {id: ["tools.register"] for id in ids}
    async with Host(
        [tmp_path],
        data=None,
        grants=grants,
        settings=HostSettings(supervision=supervision, variables={**os.environ, "PATH": path}),
    ) as host:
        assert sorted(host) == ids
        assert {status.id.split("-")[0] for status in host.status()} == {*STARTS_AGAIN}
        assert all(status.dialect == status.id.split("-")[0] for status in host.status())
        middle = Meeting(len(ids))
        loads = {id: Load(await host.ready(id), middle, crashes="victim" in id) for id in ids}

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for load in loads.values():
                    tasks.start_soon(load.run)

        for id, load in loads.items():
            if "steady" in id:
                assert (load.right, load.errors) == (CALLS, []), id
            else:
                assert any(isinstance(error, ConnectionLost) for error in load.errors), id
                assert load.right + len(load.errors) == CALLS
        for dialect, starts_again in STARTS_AGAIN.items():
            await check_afterwards(
                host, next(id for id in ids if id.startswith(dialect) and "victim" in id), starts_again
            )


async def check_afterwards(host: Host, id: str, starts_again: bool) -> None:
    """A crashed extension works again, or fails with a reason, as in its own system."""
    if starts_again:
        assert await (await host.ready(id)).call_tool("exclaim", {"text": "back"}) == "back!"
        return
    with pytest.raises(BecketError):
        await (await host.ready(id)).call_tool("exclaim", {"text": "back"})
