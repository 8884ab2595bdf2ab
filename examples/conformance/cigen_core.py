"""A core of cigen for `becket conform --host`: starts a plugin, requests a plan and the files, and ends."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys

from becket import BecketError, connect_extension
from becket.adapters.cigen import GENERATE, PLAN, CigenDiagnostic, CigenSchema, GenerateRequest, Level, PlanRequest


def check(diagnostics: tuple[CigenDiagnostic, ...]) -> None:
    """Ends the program if there is an error among these."""
    for one in diagnostics:
        if one.level is Level.ERROR:
            raise SystemExit(f"error: {one.message}")


async def main(command: list[str]) -> None:
    async with connect_extension(command, id="conform", dialect="cigen") as plugin:
        schema = CigenSchema(version="1")
        plan = await plugin.peer.call(PLAN, PlanRequest(schema=schema))
        check(plan.diagnostics)
        request = GenerateRequest(target="conform", graph=plan.resources, schema=schema)
        check((await plugin.peer.call(GENERATE, request)).diagnostics)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:] or shlex.split(os.environ["BECKET_CONFORM_CHILD"])))
    except BecketError as error:
        sys.exit(f"the plugin failed: {error}")
