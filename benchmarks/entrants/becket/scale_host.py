"""The cost of a host with many extensions, or with many tools: one experiment a run.

The processor time of an iteration is that of the loop's thread, so other programs do not affect it. That of idle
extensions is the whole program's, as a share of a core.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from becket.contract.providers import user
from becket.host import Host
from becket.host.starting.snapshot import create_snapshot
from becket.host.starting.working_copies import open_working_copy, remove_discarded
from benchmarks.entrants.becket.share_host import iterations, run
from benchmarks.hosting.experiments import Values, forget_peak, peak_kib, print_experiment
from benchmarks.hosting.measurement import load_settings

TOOLS = 8_000
CHANGING_TOOLS = 4_000
EXTENSIONS = 200
SETTLED = 11  # seconds: a handshake may take ten
FILES, FILE_BYTES, STARTS = 100, 4_096, 21
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
PERMISSIONS = ["providers.register", "tools.register"]

settings = load_settings()


def write_extensions(folder: Path, kind: str, tools: int, count: int) -> dict[str, list[str]]:
    """Writes so many extensions with so many tools each, and returns what to grant them."""
    program = Path(settings["child"][-1]).read_text(encoding="utf-8")
    for number in range(count):
        one = folder / f"one{number}"
        one.mkdir()
        (one / "main.py").write_text(program, encoding="utf-8")
        lines = [
            f'id = "one{number}"',
            'version = "1.0.0"',
            f'command = ["python3", "-I", "-S", "main.py", "{kind}", "{tools}"]',
            f"permissions = {PERMISSIONS}",
            f'dialect = "{kind}"',
        ]
        (one / "becket.toml").write_text("\n".join(lines), encoding="utf-8")
    return {f"one{number}": PERMISSIONS for number in range(count)}


async def handshake(backend: str) -> Values:
    """One extension with so many tools as fit into a frame: iterations from the start of the host until it is ready."""
    with TemporaryDirectory() as folder:
        grants = write_extensions(Path(folder), "native", TOOLS, 1)
        with iterations(backend) as took:
            async with Host([folder], grants=grants, data=None) as host:
                await host.ready("one0")
    return {"handshake": [max(took)]}


async def storm(backend: str) -> Values:
    """An MCP server whose tools change as soon as they were listed."""
    with TemporaryDirectory() as folder:
        grants = write_extensions(Path(folder), "mcp", CHANGING_TOOLS, 1)
        async with Host([folder], grants=grants, data=None) as host:
            await host.ready("one0")
            used, began = time.process_time(), time.perf_counter()
            with iterations(backend) as took:
                await anyio.sleep(settings["seconds"])
            share = (time.process_time() - used) / (time.perf_counter() - began)
    return {"storm": [max(took, default=0.0)], "storm_share": [100 * share]}


async def many(backend: str) -> Values:
    """Many extensions: iterations from the start of the host until all are ready, then what they cost while idle, once
    each link has checked the deadline of its handshake for the last time."""
    with TemporaryDirectory() as folder:
        grants = write_extensions(Path(folder), "native", 3, EXTENSIONS)
        host = Host([folder], grants=grants, data=None)
        with iterations(backend) as started:
            await host.start()
            for id in host:
                await host.ready(id)
        await anyio.sleep(SETTLED)
        used, began = time.process_time(), time.perf_counter()
        await anyio.sleep(2 * settings["seconds"])
        share = (time.process_time() - used) / (time.perf_counter() - began)
        with iterations(backend) as stopped:
            await host.aclose()
    return {"many_start": [max(started)], "many_idle": [100 * share], "many_stop": [max(stopped)]}


async def turn(backend: str) -> Values:
    """A model that calls thousands of tools in one turn, each of which returns much."""
    with TemporaryDirectory() as folder:
        grants = write_extensions(Path(folder), "native", 3, 1)
        async with Host([folder], grants=grants, data=None) as host:
            await host.ready("one0")
            before = forget_peak()
            await host.complete("one0:local:greedy", messages=[user("go on")], use_tools=True)
            return {"turn": [(peak_kib() - before) / 1024]}


async def working_copy(backend: str) -> Values:
    """A folder of so many files that each start copies; what the start before has written is discarded.

    In memory: on a shared disk a new file takes ten times as long, which is no cost of becket."""
    took: list[float] = []
    with TemporaryDirectory(dir=MEMORY) as folder:
        files = Path(folder, "files")
        for number in range(FILES):
            file = files / f"part{number % 10}" / f"module{number}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"#" * FILE_BYTES)
        approved = create_snapshot(files, Path(folder, "copies"))
        for _ in range(STARTS):
            began = time.thread_time()
            copy = open_working_copy(Path(folder, "working"), "one", approved)
            took.append(1_000 * (time.thread_time() - began))
            assert copy is not None
            copy.release()
            remove_discarded(Path(folder, "working"), "one")  # a host does so while the program starts
    return {"working_copy": took[1:]}  # the first has nothing to discard


EXPERIMENTS = {"handshake": handshake, "storm": storm, "many": many, "working_copy": working_copy, "turn": turn}


def main() -> None:
    name, _, backend = settings["experiment"].partition(" ")
    chosen = backend or "asyncio"

    async def experiment() -> None:
        await print_experiment(EXPERIMENTS[name](chosen))

    run(experiment, chosen)


if __name__ == "__main__":
    main()
