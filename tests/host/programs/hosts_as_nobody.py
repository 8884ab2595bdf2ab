"""Hosts the extensions of a folder as a user to whom modes apply, and prints in which folders each has written.

Started by root it becomes the user `nobody`, after a first run that loads all modules: that user may not read them. For
the same reason it is given an interpreter that this user can run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import anyio

from becket import Limits
from becket.host import Host, HostSettings

NOBODY = 65534
PATIENT = Limits(query_seconds=60.0)  # on a busy machine the smallest query may take longer than the usual second
IDS = ["journal", "make", "validator", "weather", "workshop"]


def agree(prompt: str, decision: object) -> bool:
    return True


def find_written(data: Path) -> dict[str, list[str]]:
    """Returns for each extension the slots with a file that it has written, and what is in that."""
    found: dict[str, list[str]] = {}
    for path in sorted(data.glob("working/*/*/[!.]*/written")):
        _, id, slot, _, _ = path.relative_to(data).parts
        found.setdefault(id, []).append(f"{slot}: {path.read_text(encoding='utf-8')}")
    return found


async def observe(root: Path, data: Path, hosts: int) -> list[dict[str, list[str]]]:
    seen: list[dict[str, list[str]]] = []
    with anyio.fail_after(100):
        for _ in range(hosts):
            async with Host([root], data=data, ask=agree, settings=HostSettings(limits=PATIENT)) as host:
                for id in IDS:
                    await host.ready(id)
                seen.append(find_written(data))
                for id in IDS:
                    await host[id].reload()
                seen.append(find_written(data))
    return seen


def become_nobody(folder: Path) -> None:
    os.chown(folder, NOBODY, NOBODY)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def main() -> None:
    folder, sys.executable = Path(sys.argv[1]), sys.argv[2]
    if os.geteuid() == 0:
        anyio.run(observe, folder / "root", folder / "first", 1)
        become_nobody(folder)
    seen = anyio.run(observe, folder / "root", folder / "data", 2)
    print(json.dumps({"user": os.geteuid(), "seen": seen}))


main()
