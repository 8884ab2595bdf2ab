"""The official Python client of MCP against becket's server, in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.mcp.servers import KIT, ROOT, needs_kit

HERE = Path(__file__).parent
pytestmark = [needs_kit, pytest.mark.process, pytest.mark.timeout(60)]  # the kit takes seconds to start


def drive(mode: str, *arguments: str) -> dict[str, Any]:
    server = [sys.executable, str(HERE / "notebook.py"), *arguments]
    command = [str(KIT), str(HERE / "official_client.py"), mode, *server]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=50, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def text_of(result: dict[str, Any]) -> str:
    text: str = result["content"][0]["text"]
    return text


def test_the_official_client_uses_all_that_an_extension_offers() -> None:
    report = drive("legacy")

    assert report["version"] == "2025-11-25"
    assert report["server"] == {"name": "notebook", "version": "2.1.0"}
    assert report["capabilities"].keys() == {"tools", "prompts", "resources", "logging"}
    assert {tool["name"] for tool in report["tools"]} >= {"add", "find", "count"}
    assert report["add"]["structuredContent"] == {"notes": 2}
    assert text_of(report["find"]) == "call Ada"
    assert report["find"]["structuredContent"] == {"result": "call Ada"}  # the kit validates it against the schema
    schemas = {tool["name"]: tool.get("outputSchema") for tool in report["tools"]}
    assert schemas["add"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert schemas["find"]["properties"] == {"result": {"type": "string"}}
    assert [part["type"] for part in report["draw"]["content"]] == ["text", "image"]
    assert (report["fail"]["isError"], text_of(report["fail"])) == (True, "there is no such note")
    assert report["misused"]["isError"]
    assert report["nope"] == -32602
    assert report["progress"] == [[1, 2, "step 1"], [2, 2, "step 2"]]
    assert text_of(report["ask"]) == "hello {'name': 'Ada'}"
    assert report["was_cancelled"]
    assert report["prompts"][0]["name"] == "summary"
    assert "asked for with ['a', 'b']" in report["prompt"]["messages"][0]["content"]["text"]
    assert [resource["uri"] for resource in report["resources"]] == ["note://0", "note://1"]
    assert report["resource"]["contents"][0]["text"] == "buy milk"
    assert report["logged"] == ["added call Ada"]


def test_a_client_that_first_requests_a_newer_protocol_finds_the_supported_one() -> None:
    report = drive("auto", "--heard")

    assert report["version"] == "2025-11-25"
    assert text_of(report["find"]) == "buy milk"
