"""The guard blocks, requires confirmation, modifies and redacts, each only where it should."""

from __future__ import annotations

from typing import Any

import pytest
from examples.extensions.guard.guard import Guard
from tests.examples.example_programs import manifest_of, started

from becket.contract.hooks import Block, Confirm, Continue, HookEvent, Inject, Modify, Replace
from becket.errors import PermissionDenied
from becket.testing import connected

GRANTS = manifest_of("guard").permissions
IN_TIME = {"command": "ls", "timeout": 5}


def before(input: dict[str, Any], tool: str = "bash") -> HookEvent:
    return HookEvent.before_tool_call(tool, input)


@pytest.mark.loops
@pytest.mark.parametrize("command", ["rm -rf /", "cd x && rm -r .", "mkfs.ext4 /dev/sda", "dd if=x of=/dev/sda"])
async def test_a_destructive_command_is_blocked(command: str) -> None:
    async with connected(Guard(), grants=GRANTS) as (host, _):
        assert isinstance(await host.handle_hook(before({"command": command, "timeout": 5})), Block)


async def test_a_command_that_rewrites_history_needs_confirmation() -> None:
    async with connected(Guard(), grants=GRANTS) as (host, _):
        assert isinstance(await host.handle_hook(before({"command": "git push --force"})), Confirm)


async def test_a_command_without_a_timeout_gets_one() -> None:
    async with connected(Guard(), grants=GRANTS) as (host, _):
        assert await host.handle_hook(before({"command": "ls"})) == Modify({"command": "ls", "timeout": 60})
        assert await host.handle_hook(before(IN_TIME)) == Continue()


async def test_other_tools_are_not_checked() -> None:
    async with connected(Guard(), grants=GRANTS) as (host, _):
        assert await host.handle_hook(before({"command": "rm -rf /"}, tool="poem")) == Continue()


async def test_secrets_are_hidden_from_models() -> None:
    async with connected(Guard(), grants=GRANTS) as (host, _):
        seen = HookEvent.after_tool_call("env", {}, "TOKEN=sk-abcdefgh1234 HOME=/root")
        assert await host.handle_hook(seen) == Replace("TOKEN=[a secret] HOME=/root")
        seen = HookEvent.after_tool_call("env", {}, "HOME=/root")
        assert await host.handle_hook(seen) == Continue()


async def test_a_session_begins_with_the_rules() -> None:
    async with connected(Guard(), grants=GRANTS) as (host, _):
        assert isinstance(await host.handle_hook(HookEvent.on_session_start("one")), Inject)


async def test_the_hook_is_refused_without_the_permission() -> None:
    async with connected(Guard(), grants=GRANTS) as (host, _):
        host.gate.revoke("session.lifecycle")
        with pytest.raises(PermissionDenied):
            await host.handle_hook(HookEvent.on_session_start("one"))


@pytest.mark.process
async def test_guard_runs_as_a_process() -> None:
    async with started("guard") as guard:
        assert isinstance(await guard.handle_hook(before({"command": "rm -rf /"})), Block)
        assert await guard.handle_hook(before(IN_TIME)) == Continue()
