"""Every example runs, ends by itself and prints the documented output."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.examples.example_programs import EXAMPLES, EXTENSIONS, printed_by

pytestmark = [pytest.mark.process]

RUN_HERE = {
    "raw_peer.py",
    "blocking_host.py",
    "tcp_server.py",
    "small_host.py",
    "new_dialect.py",
    "new_framing.py",
}
RUN_ELSEWHERE = {"fastapi_host.py", "pydantic_tools.py"}  # in test_fastapi.py and test_pydantic.py
CHILDREN_OF_THOSE = {"raw_child.py", "raw_child_stdlib.py", "raw_child.js", "blocking_child.py"}

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


def test_every_example_is_run_by_a_test() -> None:
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file() and not path.name.startswith("demo")}
    assert files == RUN_HERE | RUN_ELSEWHERE | CHILDREN_OF_THOSE


@pytest.mark.parametrize(
    "child", ["raw_child.py", "raw_child_stdlib.py", pytest.param("raw_child.js", marks=needs_node)]
)
def test_a_host_cannot_distinguish_the_language_of_its_child(child: str, tmp_path: Path) -> None:
    assert printed_by("raw_peer.py", child, folder=tmp_path) == [
        "echo returned {'text': 'milk'}",
        "total returned 10, and let the host do every addition",
        "count has reached 1",
        "count has reached 2",
        "count has reached 3",
        "count returned 'done'",
        "sleep was given up: sleep: no response within 1 s",
        "sleep was cancelled in the child too",
        "crash ended the child with exit code 3; stderr: out of paper",
    ]


def test_a_host_and_a_child_need_no_event_loop(tmp_path: Path) -> None:
    assert printed_by("blocking_host.py", folder=tmp_path) == [
        "One call: 6 words.",
        "Three calls on their way at once, from one thread: [1, 2, 3] words.",
        "One call and its events:",
        "  poem is counted",
        "  song is counted",
        "  letter is counted",
        "  10 words in all",
        "A call that fails: cannot count novel: no such title: novel (-32602).",
    ]


def test_a_server_serves_many_clients(tmp_path: Path) -> None:
    assert printed_by("tcp_server.py", folder=tmp_path) == [
        "The server has 2 clients.",
        "Ada's message reached 1 other client.",
        "Grace received from Ada: good morning",
        "The server is gone. Ada's link ended: closed by the other peer",
    ]


def test_a_host_uses_four_extensions(tmp_path: Path) -> None:
    files = [path for path in (EXTENSIONS / "guard").iterdir() if path.is_file()]
    lines = {path.suffix: path.read_bytes().count(b"\n") for path in files}
    shown = printed_by("small_host.py", folder=tmp_path)
    assert [line.rstrip() for line in shown] == [
        "notes offers: keep, find, count",
        "kept: buy milk",
        "kept: call Ada",
        "- buy milk",
        "How long have you been tired of your old code?",
        "Counting lines: started",
        "Counting lines: done",
        " kind   files  lines",
        f" .py    1      {lines['.py']}",
        f" .toml  1      {lines['.toml']}",
        f"census returned {{'files': 2, 'lines': {sum(lines.values())}}}",
        "blocked: `rm -rf /` would destroy what cannot be brought back",
        "to be asked: `git push --force` rewrites what others have pulled. Run it?",
        "run as {'command': 'ls', 'timeout': 60}",
        "not started: notes: handshake failed: /capabilities/tools: "
        "registered tools but lacks permission 'tools.register'",
    ]


def test_a_custom_dialect_takes_one_file(tmp_path: Path) -> None:
    assert printed_by("new_dialect.py", folder=tmp_path) == [
        "their program, our host: HELLO",
        "our program, their protocol: hello",
        "as recorded, at both ends",
    ]


def test_a_custom_framing_takes_one_file(tmp_path: Path) -> None:
    assert printed_by("new_framing.py", folder=tmp_path) == [
        '33:{"jsonrpc":"2.0","method":"tick"},',
        "over netstrings: 6",
        "it keeps the promises of a framing",
    ]
