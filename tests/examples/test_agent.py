"""The agent uses tools of an extension and of an MCP server in the same way."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.examples.example_programs import printed_by

pytestmark = pytest.mark.process


def test_the_agent_uses_tools_of_both_in_one_conversation(tmp_path: Path) -> None:
    assert printed_by("agent/agent.py", folder=tmp_path) == [
        "tools: clock_time_in, notes_count, notes_find, notes_keep",
        "clock: clock_time_in({'city': 'Tokyo'}) -> It is 21:00 in Tokyo.",
        "notes: notes_keep({'text': 'It is 21:00 in Tokyo.'}) -> kept: It is 21:00 in Tokyo.",
        "notes: notes_find({}) -> - It is 21:00 in Tokyo.",
        "- It is 21:00 in Tokyo.",
    ]


def test_the_error_of_a_server_tool_is_sent_to_the_model(tmp_path: Path) -> None:
    lines = printed_by("agent/agent.py", "What time is it in Atlantis?", folder=tmp_path)

    assert lines[-1] == "Tool execution failed: time_in: I have no clock in Atlantis."
