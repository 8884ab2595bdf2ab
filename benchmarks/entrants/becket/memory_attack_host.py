"""How much a host grows under an extension that tries to fill its memory, and how long it then takes to close."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from becket.contract.memory import Append
from becket.host import Host, HostSettings, SupervisionPolicy
from becket.methods.registry import Registry
from becket.permissions.policies import Decision
from benchmarks.hosting.experiments import Values, forget_peak, peak_kib, print_experiment
from benchmarks.hosting.measurement import load_settings

ID = "attacker"
RECORDS = 1_000  # which nearly fill one response
CONTENT = "a" * 3_500
META = [{} for _ in range(20_000)]  # 60,000 bytes, of which a record may have 65,536
GRANTS = ["memory.read", "config.subscribe"]

settings = load_settings()
methods = Registry()


@methods.handle("slow")
async def slow(params: Any) -> None:
    await anyio.sleep_forever()


async def answer_first(prompt: str, decision: Decision) -> bool:
    if decision.method == "memory.append":
        await anyio.sleep_forever()
    return True  # it may start


def write_extension(folder: Path, attack: str) -> None:
    program = Path(__file__).with_name("memory_attack_child.py").read_text(encoding="utf-8")
    Path(folder, ID).mkdir(parents=True)
    Path(folder, ID, "main.py").write_text(program, encoding="utf-8")
    lines = [
        f'id = "{ID}"',
        'version = "1.0.0"',
        f'command = ["python3", "-I", "-S", "main.py", "{attack}"]',
        f"permissions = {[] if attack.startswith('consent') else GRANTS}",
        'restart = {strategy = "never"}',
    ]
    Path(folder, ID, "becket.toml").write_text("\n".join(lines), encoding="utf-8")


async def attack(kind: str) -> Values:
    """Lets the extension attack for some seconds."""
    with TemporaryDirectory() as folder:
        write_extension(Path(folder, "extensions"), kind)
        host = Host(
            [Path(folder, "extensions")],
            grants={} if kind.startswith("consent") else {ID: GRANTS},
            data=Path(folder, "data"),
            methods=methods,
            ask=answer_first if kind.startswith("consent") else None,
            settings=HostSettings(supervision=SupervisionPolicy(heartbeat=None)),
        )
        async with host:
            extension = await host.ready(ID)
            for _ in range(RECORDS):
                host.store.append(Append(ID, CONTENT, meta=META if kind.startswith("meta") else None))
            gc.collect()
            before = forget_peak()
            assert extension.peer is not None
            await extension.peer.notify("begin")
            await anyio.sleep(settings["attack_seconds"])
            growth = (peak_kib() - before) / 1024
            began = time.perf_counter()
        close = time.perf_counter() - began
        return {f"{kind}_growth": [max(growth, (peak_kib() - before) / 1024)], f"{kind}_close": [close]}


async def main() -> None:
    await print_experiment(attack(kind))


kind, _, loop = settings["experiment"].partition(" ")  # such as `slow_requests` or `slow_requests trio`
if loop == "trio":
    anyio.run(main, backend="trio")
else:
    anyio.run(main, backend_options={"use_uvloop": loop == "uvloop"})
