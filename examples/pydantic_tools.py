"""Tools whose inputs and results are pydantic models: `python examples/pydantic_tools.py`, with `becket[pydantic]`.

The extension and its host run in one program here; nothing of the extension changes when it is a program of its own.
"""

from __future__ import annotations

import asyncio
from datetime import date

from pydantic import BaseModel, Field

from becket import ExtensionServer, tool
from becket.errors import BadValue
from becket.testing import connected


class Loan(BaseModel):
    """A search for books."""

    title: str = Field(min_length=1)
    days: int = Field(default=14, ge=1, le=60)


class Lent(BaseModel):
    title: str
    until: date = Field(serialization_alias="dueDate")


class Library(ExtensionServer):
    id = "library"
    version = "0.1.0"

    @tool("Lends a book.")
    async def lend(self, loan: Loan) -> Lent:
        return Lent(title=loan.title, until=date.fromordinal(date(2026, 1, 1).toordinal() + loan.days))


async def main() -> None:
    async with connected(Library(), grants=["tools.register"]) as (host, _):
        lend = host.tools[0]
        print(f"{lend.name} takes {', '.join(lend.input_schema['properties'])}")
        print(f"{lend.name} returns {', '.join(lend.output_schema['properties'])}")
        print(await host.call_tool("lend", {"title": "Eliza", "days": 7}))
        try:
            await host.call_tool("lend", {"days": "7", "colour": "red"})
        except BadValue as error:
            for pointer, problem in sorted(error.problems):
                print(f"{pointer or '/'} {problem}")


if __name__ == "__main__":
    asyncio.run(main())
