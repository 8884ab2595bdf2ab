"""`becket trace` in the dialects of other systems: recorded, shown and replayed like any other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.commands import becket_process, here, json_lines

from becket.adapters import cigen
from becket.cli.support.exit_codes import ExitCode
from becket.cli.trace import build_record_command
from becket.host import connect_extension
from becket.testing.transcripts.file_format import load_transcript

pytestmark = [pytest.mark.process, pytest.mark.anyio]

EXAMPLES = Path(__file__).parents[2] / "examples" / "dialects"
MORPHIR = [sys.executable, str(EXAMPLES / "morphir" / "validator.py")]
CIGEN = [str(EXAMPLES / "cigen" / "cigen-provider-make")]


async def record_morphir(path: Path) -> None:
    command, grants = build_record_command(path, MORPHIR), ["tools.register"]
    async with connect_extension(command, id="validator", dialect="morphir", grants=grants) as validator:
        await validator.call_tool_json("forget", {})


async def record_cigen(path: Path) -> None:
    async with connect_extension(
        build_record_command(path, CIGEN), id="make", dialect="cigen", inherit_env=True
    ) as make:
        await make.peer.call(cigen.PLAN, cigen.PlanRequest(schema=cigen.CigenSchema(version="1")))


def steps_of(path: Path, *words: str) -> list[tuple[str, str, str]]:
    found = json_lines("trace", "show", "--json", *words, str(path))
    return [(step["kind"], step.get("to", ""), step.get("method", "")) for step in found]


async def test_messages_without_a_version_are_detected_by_the_first_message(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    await record_morphir(path)

    assert steps_of(path)[:6] == [
        ("call", "child", "initialize"),
        ("response", "host", "initialize"),
        ("call", "child", "capabilities"),
        ("response", "host", "capabilities"),
        ("call", "child", "forget"),
        ("response", "host", "forget"),
    ]
    assert {kind for kind, to, _ in steps_of(path, "--dialect", "plain") if to == "host"} == {"invalid", "closed"}


async def test_messages_that_are_no_text_are_shown_as_json(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    await record_cigen(path)

    assert load_transcript(path).framing == "length-prefixed"
    assert steps_of(path)[:4] == [
        ("call", "child", "hello"),
        ("response", "host", "hello"),
        ("call", "child", "plan"),
        ("response", "host", "plan"),
    ]
    shown = here("trace", "show", "--full", str(path))
    assert '"version":"1"' in shown.stdout


@pytest.mark.parametrize("dialect", ["morphir", "cigen"])
async def test_a_recording_is_replayed_in_its_dialect(tmp_path: Path, dialect: str) -> None:
    path = tmp_path / "talk.jsonl"
    await (record_morphir if dialect == "morphir" else record_cigen)(path)

    done = becket_process("trace", "replay", str(path), "--", *(MORPHIR if dialect == "morphir" else CIGEN))

    assert done.returncode == ExitCode.DONE, done.stdout
    assert "0 differences" in done.stderr


def test_differences_in_binary_messages_are_reported_by_their_members(tmp_path: Path) -> None:
    path = EXAMPLES.parents[1] / "tests" / "transcripts" / "cigen" / "handshake.jsonl"

    done = here("trace", "replay", "--json", str(path), "--", *CIGEN)

    assert done.exit_code == ExitCode.FAILED
    assert '"pointer":"/result/name"' in done.stdout


def test_an_unknown_dialect_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text('{"transcript":1,"framing":"json-lines","dialect":"klingon"}\n', encoding="utf-8")

    for words in (["show", str(path)], ["show", "--dialect", "klingon", str(path)]):
        done = here("trace", *words)
        assert done.exit_code == ExitCode.USAGE
        assert "unknown dialect: klingon" in done.stderr
