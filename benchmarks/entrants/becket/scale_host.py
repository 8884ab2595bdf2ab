"""What a host bears that has many extensions, or one with many tools: one experiment a run.

The processor time of an iteration is that of the loop's thread, so other programs do not get into it. That of idle
extensions is the whole program's, of a second.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from becket.host import Host
from benchmarks.entrants.becket.share_host import iterations, run, used_seconds
from benchmarks.hosting.measuring import busy_seconds, load_settings, print_figures, waited_seconds

Values = dict[str, list[float]]
"""Each quantity that an experiment measures: its samples."""

TOOLS = 8_000
CHANGING_TOOLS = 4_000
EXTENSIONS = 200

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
            'permissions = ["tools.register"]',
            f'dialect = "{kind}"',
        ]
        (one / "becket.toml").write_text("\n".join(lines), encoding="utf-8")
    return {f"one{number}": ["tools.register"] for number in range(count)}


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


async def crowd_start(backend: str) -> Values:
    """Many extensions: iterations from the start of the host until all are ready, then what they cost while idle."""
    with TemporaryDirectory() as folder:
        grants = write_extensions(Path(folder), "native", 3, EXTENSIONS)
        with iterations(backend) as took:
            async with Host([folder], grants=grants, data=None) as host:
                for id in host:
                    await host.ready(id)
                start = max(took)
                await anyio.sleep(2)
                used, began = time.process_time(), time.perf_counter()
                await anyio.sleep(2 * settings["seconds"])
                share = (time.process_time() - used) / (time.perf_counter() - began)
                took.clear()
        return {"crowd_start": [start], "crowd_idle": [100 * share], "crowd_stop": [max(took)]}


EXPERIMENTS = {"handshake": handshake, "storm": storm, "crowd_start": crowd_start}


def main() -> None:
    busy, waited, used, began = busy_seconds(), waited_seconds("self"), used_seconds(), time.perf_counter()
    name, _, backend = settings["experiment"].partition(" ")
    chosen = backend or "asyncio"

    async def experiment() -> Values:
        return await EXPERIMENTS[name](chosen)

    values = run(experiment, chosen)
    seconds = time.perf_counter() - began
    figures: dict[str, Any] = {
        "values": values,
        "foreign": max(0.0, busy_seconds() - busy - (used_seconds() - used)) / seconds,
        "waited": (waited_seconds("self") - waited) / seconds,
    }
    print_figures(figures)


if __name__ == "__main__":
    sys.exit(main())
