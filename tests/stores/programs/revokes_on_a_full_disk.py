"""Revokes a permission in a host whose disk is full: `python revokes_on_a_full_disk.py FOLDER`.

Prints the outcome as one line of JSON."""

import json
import logging
import os
import sys
from pathlib import Path

import anyio

from becket.errors import RevocationNotPersistent
from becket.host import Host
from becket.host.starting.grants_file import edit_grants, load_grants

logging.disable()
folder = Path(sys.argv[1])
grants = folder / "grants.toml"
report: dict[str, object] = {}


def fill() -> None:
    """Takes all that is left of the disk."""
    with open(folder / "other", "ab", buffering=0) as other:
        for size in (1 << 16, 1 << 12):
            try:
                while other.write(bytes(size)) == size:
                    pass
            except OSError:
                pass


def exists(name: str) -> bool:
    return (folder / name).exists()


async def main() -> None:
    edit_grants(grants, "notes", lambda entry: entry.with_grants(["memory.read", "memory.write"]))
    async with Host(data=folder) as host:
        fill()
        await host.revoke("notes", "memory.write")  # with the reserved space
        report["first"] = load_grants(grants)["notes"].deny
        report["has reserve"] = exists("store.sqlite.ballast")
        fill()
        try:
            await host.revoke("notes", "memory.read")
        except RevocationNotPersistent as error:
            report["second"] = error.permissions
        report["problems"] = [problem.extension for problem in host.problems]
        os.unlink(folder / "other")
    report["at the end"] = load_grants(grants)["notes"].deny
    report["pending"] = exists("grants.toml.pending")


anyio.run(main)
print(json.dumps(report))
