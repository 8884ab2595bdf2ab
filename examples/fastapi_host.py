"""Extensions in a web application: `pip install fastapi uvicorn`, then `uvicorn fastapi_host:app`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException

from becket import BecketError, Host, HostSettings
from becket.errors import BadValue, NotDeclared

GRANTS = {"notes": ["memory.read", "memory.write", "tools.register"]}
host = Host([Path(__file__).parent / "extensions"], grants=GRANTS, data=None, settings=HostSettings(only=GRANTS))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    async with host:
        await host.settled()
        yield


app = FastAPI(title="becket", lifespan=lifespan)


@app.get("/status")
def status() -> dict[str, Any]:  # a plain function runs in a thread, where `status` works too
    problems = [problem.to_dict() for problem in host.problems]
    return {"extensions": [one.to_dict() for one in host.status()], "problems": problems}


@app.post("/tools/{name}")
async def call_tool(name: str, input: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": await host.call_tool_json(name, input)}
    except BecketError as error:
        code = 404 if isinstance(error, NotDeclared) else 422 if isinstance(error, BadValue) else 502
        raise HTTPException(code, str(error)) from error
