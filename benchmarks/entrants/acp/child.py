"""agent-client-protocol as a child: an agent. Calls are extension methods, events the chunks of its messages."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from acp import Agent, InitializeResponse, PromptResponse, run_agent, update_agent_message_text


class BenchmarkAgent(Agent):
    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def prompt(self, prompt: list[Any], session_id: str, **kwargs: Any) -> PromptResponse:
        count, text = prompt[0].text, prompt[1].text
        for _ in range(int(count)):
            await self.client.session_update(session_id, update_agent_message_text(text))
        return PromptResponse(stop_reason="end_turn")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "echo":
            return {"text": params["text"]}
        if method == "drive":
            for _ in range(params["count"]):
                await self.client.ext_method("host/echo", {"text": params["text"]})
            return params
        return {"pid": os.getpid(), "cpu": time.process_time()}


asyncio.run(run_agent(BenchmarkAgent()))
