"""An agent whose tools come from an extension and from an MCP server at once: `python agent.py`.

The host finds both, starts them, and offers their tools under one set of names; the loop treats all tools alike.
The model here is a few rules, so that the example needs no network: put a call of a real one in its place.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

from becket import Host, HostSettings
from becket.contract.providers import ToolUse

HERE = Path(__file__).parent
ROOTS = [HERE, HERE.parent / "extensions"]
GRANTS = {"notes": ["memory.read", "memory.write", "tools.register"], "clock": ["tools.register"]}
QUESTION = "What time is it in Tokyo? Write it down, and show me my notes."
MAX_TURNS = 8

Block = dict[str, Any]


def ask_model(messages: list[Block], tools: list[Block]) -> list[Block]:
    """Returns the response of the model: a text, or the tool that it calls."""
    names = {tool["name"] for tool in tools}
    prompt, results = str(messages[0]["content"]), results_in(messages)
    if "clock_time_in" in names and "time" in prompt and not results:
        city = re.search(r" in (\w+)", prompt)
        return [tool_use("clock_time_in", city=city.group(1) if city else "London")]
    if "notes_keep" in names and "down" in prompt and len(results) == 1:
        return [tool_use("notes_keep", text=results[0])]
    if "notes_find" in names and "notes" in prompt and len(results) == 2:
        return [tool_use("notes_find")]
    return [{"type": "text", "text": results[-1] if results else "I would need a tool for that."}]


def tool_use(name: str, **input: str) -> Block:
    return {"type": "tool_use", "id": name, "name": name, "input": input}


def results_in(messages: list[Block]) -> list[str]:
    blocks = [block for message in messages[1:] if message["role"] == "user" for block in message["content"]]
    return [block["content"] for block in blocks]


async def run_agent(host: Host, prompt: str) -> str:
    """Calls the model repeatedly and runs the tools that it calls, until it responds with a text."""
    messages: list[Block] = [{"role": "user", "content": prompt}]
    for _ in range(MAX_TURNS):
        content = ask_model(messages, [*host.tools.for_model()])
        calls = [
            ToolUse(block["id"], block["name"], block["input"]) for block in content if block["type"] == "tool_use"
        ]
        if not calls:
            return "".join(block["text"] for block in content)
        results: list[Block] = []
        for use in calls:
            whose = host.tools.get(use.name).extension
            results.append(await host.use_tool(use))
            print(f"{whose}: {use.name}({use.input}) -> {results[-1]['content']}")
        messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
    return "I have thought about it for too long."


async def main() -> None:
    async with Host(ROOTS, grants=GRANTS, data=None, settings=HostSettings(only=[*GRANTS])) as host:
        for id in GRANTS:
            await host.ready(id)
        print("tools:", ", ".join(tool["name"] for tool in host.tools.for_model()))
        print(await run_agent(host, " ".join(sys.argv[1:]) or QUESTION))


if __name__ == "__main__":
    asyncio.run(main())
