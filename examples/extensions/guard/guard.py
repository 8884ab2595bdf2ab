"""A guard: it checks the commands that a model runs with the tool `bash`, and the output of any tool.

The hooks are plain functions that never wait. `inline=True` promises that, and saves each of them a thread."""

from __future__ import annotations

import re

from becket import ExtensionServer, hook
from becket.contract import Block, Confirm, Continue, HookEvent, HookResult, Inject, Modify, Replace

DESTROYS = re.compile(r"\brm\s+-\w*[rf]|\bmkfs\b|\bdd\b.*\bof=/dev/")
REWRITES = re.compile(r"\bgit\s+push\b.*(--force|-f\b)")
SECRET = re.compile(r"\b(sk-[\w-]{8,}|ghp_\w{8,}|AKIA[A-Z0-9]{16})")
LONGEST = 60  # seconds for one command


class Guard(ExtensionServer):
    id = "guard"
    version = "1.0.0"

    @hook("on_session_start", inline=True)
    def tell_the_rules(self, event: HookEvent) -> HookResult:
        return Inject("Commands that delete whole folders are blocked. Ask the user to run them.")

    @hook("before_tool_call", tool="bash", inline=True)
    def look_at_command(self, event: HookEvent) -> HookResult:
        given = event.tool_input
        command = str(given.get("command", ""))
        if DESTROYS.search(command):
            return Block(f"`{command}` would destroy what cannot be brought back")
        if REWRITES.search(command):
            return Confirm(f"`{command}` rewrites what others have pulled. Run it?")
        if "timeout" not in given:
            return Modify({**given, "timeout": LONGEST})
        return Continue()

    @hook("after_tool_call", inline=True)
    def hide_secrets(self, event: HookEvent) -> HookResult:
        output = event.tool_output or ""
        hidden = SECRET.sub("[a secret]", output)
        return Continue() if hidden == output else Replace(hidden)


if __name__ == "__main__":
    Guard().run()
