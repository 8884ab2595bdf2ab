"""`becket trace`: records transparently, shows recordings and replays them."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cli.commands import BECKET, EXTENSIONS, becket, becket_process, here, json_lines, printed
from tests.cli.terminals import Terminal

from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.output import print_long_table, print_table
from becket.cli.trace import build_record_command
from becket.host.host import Host
from becket.host.starting.connect import connect_extension
from becket.testing.transcripts.file_format import (
    ChildExited,
    EndClosed,
    FrameSent,
    LinkEnd,
    StrayBytes,
    TranscriptEntry,
    TranscriptReader,
    encode_entry,
    encode_head,
    load_transcript,
)
from becket.testing.transcripts.steps import read_steps

pytestmark = pytest.mark.process

HOST, CHILD = LinkEnd.HOST, LinkEnd.CHILD

# Responds to each line of JSON with the same id, in the framing of lines.
ECHO = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "exit":
        sys.exit(message["params"][0])
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": message.get("params")}), flush=True)
print("goodbye", file=sys.stderr)
"""


def python(source: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", source, *arguments]


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


class Recorded:
    """A program behind a recorder, and this test as its host."""

    def __init__(self, process: subprocess.Popen[bytes], path: Path) -> None:
        self.process = process
        self.path = path
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin = process.stdin
        self.stdout = process.stdout

    def ask(self, **members: Any) -> Any:
        self.stdin.write(line(**members))
        return json.loads(self.stdout.readline())

    def leave(self) -> tuple[int, str]:
        """Closes stdin; returns the exit code and what was written to stderr."""
        _, errors = self.process.communicate(timeout=100)
        return self.process.returncode, errors.decode()

    @property
    def entries(self) -> tuple[TranscriptEntry, ...]:
        return load_transcript(self.path).entries


@contextmanager
def recording(path: Path, command: list[str], *options: str) -> Iterator[Recorded]:
    process = subprocess.Popen(
        [*BECKET, "trace", "record", *options, str(path), "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    try:
        yield Recorded(process, path)
    finally:
        if process.poll() is None:
            process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        process.wait()


# -- record


def test_traffic_is_recorded_and_passed_on_unchanged(tmp_path: Path) -> None:
    with recording(tmp_path / "talk.jsonl", python(ECHO)) as talk:
        assert talk.ask(id=1, method="echo", params=["ä\n"])["result"] == ["ä\n"]
        code, errors = talk.leave()

    assert (code, errors) == (0, "goodbye\n")
    head = load_transcript(talk.path)
    assert (head.framing, head.command) == ("json-lines", tuple(python(ECHO)))
    texts = [entry for entry in talk.entries if isinstance(entry, FrameSent)]
    assert [(entry.to, entry.body + b"\n") for entry in texts] == [
        (CHILD, line(id=1, method="echo", params=["ä\n"])),
        (HOST, line(id=1, result=["ä\n"])),
    ]
    assert [type(entry) for entry in talk.entries[2:]] == [EndClosed, EndClosed, ChildExited]
    times = [entry.at for entry in talk.entries]
    assert times == sorted(times)


async def test_a_recorded_program_behaves_the_same_however_many_messages_are_sent_at_once(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    command = build_record_command(path, [sys.executable, str(EXTENSIONS / "notes" / "notes.py")])
    responses: dict[int, str] = {}
    async with connect_extension(command, id="notes", grants=["memory.write", "tools.register"]) as notes:

        async def keep(size: int) -> None:
            responses[size] = await notes.call_tool("keep", {"text": "ä" * size})

        async with anyio.create_task_group() as tasks:
            for size in range(1, 8_000, 350):
                tasks.start_soon(keep, size)

    assert responses == {size: f"kept: {'ä' * size}" for size in responses}
    calls = [step for step in read_steps(load_transcript(path).entries) if step.kind == "response"]
    assert sum(step.method == "memory.append" for step in calls) == len(responses)


async def test_a_manifest_can_have_its_program_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "extensions" / "notes"
    folder.mkdir(parents=True)
    (folder / "notes.py").write_bytes((EXTENSIONS / "notes" / "notes.py").read_bytes())
    trace = tmp_path / "notes.jsonl"
    command = [*BECKET, "trace", "record", str(trace), "--", "python3", "notes.py"]
    manifest = f'id = "notes"\nversion = "1.0.0"\ncommand = {json.dumps(command)}\npermissions = ["tools.register"]\n'
    (folder / "becket.toml").write_text(manifest, encoding="utf-8")

    for _ in range(2):
        async with Host([folder.parent], data=None, grants={"notes": ["tools.register"]}) as host:
            notes = await host.ready("notes")
            await notes.info()

    for path in (trace, tmp_path / "notes.2.jsonl"):
        assert load_transcript(path).entries[-1] == ChildExited(load_transcript(path).entries[-1].at, 0)


@pytest.mark.parametrize("code", [0, 7])
def test_the_recorder_has_the_exit_code_of_its_program(tmp_path: Path, code: int) -> None:
    with recording(tmp_path / "talk.jsonl", python(ECHO)) as talk:
        talk.stdin.write(line(method="exit", params=[code]))
        assert talk.process.wait(60) == code
        assert talk.stdout.read() == b""

    assert isinstance(talk.entries[-1], ChildExited)
    assert talk.entries[-1].exit_code == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1])
def test_the_recorder_dies_of_the_signal_that_ended_its_program(tmp_path: Path, number: int) -> None:
    with recording(tmp_path / "talk.jsonl", python(f"import os; os.kill(os.getpid(), {int(number)})")) as talk:
        assert talk.process.wait(60) == -number

    assert isinstance(talk.entries[-1], ChildExited)
    assert talk.entries[-1].exit_code == -number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_the_program_once(tmp_path: Path, number: int) -> None:
    source = f"""
import signal, sys
heard = []
def hear(number, frame):
    print("heard", flush=True)
signal.signal({int(number)}, hear)
print("ready", flush=True)
for line in sys.stdin:
    pass
"""
    with recording(tmp_path / "talk.jsonl", python(source)) as talk:
        assert talk.stdout.readline() == b"ready\n"
        os.kill(talk.process.pid, number)
        assert talk.stdout.readline() == b"heard\n"
        talk.stdin.close()
        assert talk.stdout.read() == b""
        assert talk.process.wait(60) == 0


def wait_until_asleep(pid: int) -> None:
    """Waits until the main thread of a process waits for something."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        os.sched_yield()


@pytest.mark.skipif(sys.platform != "linux", reason="a signal is sent to one thread of another process")
def test_a_signal_that_does_not_interrupt_the_last_wait_reaches_the_program(tmp_path: Path) -> None:
    source = "import os, signal; print('no more', flush=True); os.close(1); signal.pause()"
    with recording(tmp_path / "talk.jsonl", python(source)) as talk:
        assert talk.stdout.read() == b"no more\n"  # its stdout has ended, and the recorder waits for its exit
        main, reader = sorted(map(int, os.listdir(f"/proc/{talk.process.pid}/task")))
        assert main == talk.process.pid
        wait_until_asleep(main)
        assert ctypes.CDLL(None).tgkill(talk.process.pid, reader, signal.SIGTERM) == 0

        assert talk.process.wait(60) == -signal.SIGTERM


def test_the_host_gets_a_broken_pipe_when_the_program_stops_reading(tmp_path: Path) -> None:
    source = "import os, signal; os.close(0); os.write(1, b'deaf\\n'); signal.pause()"
    with recording(tmp_path / "talk.jsonl", python(source)) as talk:
        assert talk.stdout.readline() == b"deaf\n"
        with pytest.raises(BrokenPipeError):
            talk.stdin.writelines([b"x" * 65_536] * 1_000)
        talk.process.terminate()
        assert talk.process.wait(60) == -signal.SIGTERM


def test_the_program_gets_a_broken_pipe_when_the_host_stops_reading(tmp_path: Path) -> None:
    source = "import os, sys\ntry:\n  while True: os.write(1, b'{}\\n' * 1000)\nexcept BrokenPipeError: os._exit(9)"
    with recording(tmp_path / "talk.jsonl", python(source)) as talk:
        talk.stdout.readline()
        talk.stdout.close()
        assert talk.process.wait(60) == 9


def test_a_grandchild_that_holds_stdout_does_not_prevent_the_exit(tmp_path: Path) -> None:
    source = "import subprocess as s; print(s.Popen(['sleep', '60'], stdin=s.DEVNULL).pid, flush=True)"
    with recording(tmp_path / "talk.jsonl", python(source)) as talk:
        grandchild = int(talk.stdout.readline())
        try:
            assert talk.process.wait(60) == 0
        finally:
            os.kill(grandchild, signal.SIGKILL)
            os.waitpid(grandchild, 0)  # this program has adopted it


def test_a_recording_never_replaces_another_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    texts: list[str] = []
    for _ in range(3):
        with recording(path, python("")) as talk:
            texts.append(talk.leave()[1])
    with recording(path, python("print(1)"), "--overwrite") as talk:
        talk.leave()

    assert texts == ["", *(f"recording to {tmp_path}/talk.{number}.jsonl\n" for number in (2, 3))]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["talk.2.jsonl", "talk.3.jsonl", "talk.jsonl"]
    assert any(isinstance(entry, StrayBytes) for entry in load_transcript(path).entries)


def test_a_recording_that_cannot_be_written_does_not_disturb_the_conversation() -> None:
    with recording(Path("/dev/full"), python(ECHO), "--overwrite") as talk:
        assert talk.ask(id=1, method="echo", params=[1])["result"] == [1]
        assert talk.ask(id=2, method="echo", params=[2])["result"] == [2]
        code, errors = talk.leave()

    assert code == 0
    assert errors.count("recording stopped") == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(["talk.jsonl", "--", "no-such-program"], 5, id="no-such-program"),
        pytest.param(["no/such/folder/talk.jsonl", "--", "cat"], 6, id="no-such-folder"),
        pytest.param(["talk.jsonl"], 2, id="no-program"),
        pytest.param(["talk.jsonl", "--"], 2, id="nothing-behind-the-mark"),
        pytest.param(["--", "cat"], 2, id="no-file"),
    ],
)
def test_a_recording_that_fails_leaves_nothing_behind(
    words: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = here("trace", "record", *words)

    assert done.exit_code == code
    assert "error: " in done.stderr
    assert [*tmp_path.iterdir()] == []


# -- show

ADD = b'{"jsonrpc":"2.0","id":1,"method":"add","params":{"_meta":{"a":1},"x":[1,2]}}'
SUM = b'{"jsonrpc":"2.0","id":1,"result":3}'
TELL = b'{"jsonrpc":"2.0","method":"tell"}'
TALK: list[TranscriptEntry] = [
    FrameSent(0.001, CHILD, ADD),
    FrameSent(0.002, HOST, TELL),
    FrameSent(0.003, HOST, SUM),
    StrayBytes(0.004, HOST, b"oops\n"),
    EndClosed(0.005, CHILD),
    ChildExited(0.006, 0),
]


def write(path: Path, *entries: TranscriptEntry, framing: str = "content-length", end: bytes = b"") -> str:
    path.write_bytes(encode_head(framing) + b"".join(map(encode_entry, entries)) + end)
    return str(path)


def test_a_conversation_is_shown_as_a_table(tmp_path: Path) -> None:
    lines = printed("trace", "show", write(tmp_path / "talk.jsonl", *TALK)).splitlines()

    assert lines[0].split() == ["NO", "AT", "TO", "KIND", "ID", "METHOD", "TOOK", "BYTES", "CONTENT"]
    assert lines[1].split() == ["1", "1.0", "ms", "child", "call", "1", "add", "-", str(len(ADD)), '{"x":[1,2]}']
    assert lines[3].split() == ["3", "3.0", "ms", "host", "response", "1", "add", "2.0", "ms", str(len(SUM)), "3"]
    assert lines[6].endswith("the child has exited: exit code 0")


def test_params_are_truncated_unless_all_is_requested(tmp_path: Path) -> None:
    body = ADD.replace(b"[1,2]", b'"' + b"y" * 100 + b'"')
    path = write(tmp_path / "talk.jsonl", FrameSent(0.0, CHILD, body))

    assert "..." in here("trace", "show", path).stdout
    for words in (["--full"], ["--full", "--diagram"]):
        assert "y" * 100 in here("trace", "show", *words, path).stdout
        assert "_meta" in here("trace", "show", *words, path).stdout


def test_a_conversation_is_drawn(tmp_path: Path) -> None:
    lines = here("trace", "show", "-d", write(tmp_path / "talk.jsonl", *TALK)).stdout.splitlines()

    assert lines[0].split() == ["host", "child"]
    assert lines[1].startswith('  1.0 ms │── add #1 {"x":[1,2]} ───')
    assert lines[1].endswith("───▶│")
    assert lines[2].startswith("  2.0 ms │◀┄┄┄")
    assert lines[3].endswith("── #1 add after 2.0 ms: 3 ──│")


def test_without_unicode_a_conversation_is_drawn_in_ascii(tmp_path: Path) -> None:
    done = becket_process("trace", "show", "-d", write(tmp_path / "talk.jsonl", *TALK), PYTHONIOENCODING="ascii")

    assert done.returncode == 0
    assert "|-- add #1" in done.stdout


def test_on_a_terminal_a_diagram_is_as_wide_as_that_and_coloured(tmp_path: Path) -> None:
    path = write(tmp_path / "talk.jsonl", *TALK)
    with Terminal([*BECKET, "trace", "show", "--diagram", path], columns=70) as terminal:
        assert terminal.end() == 0

    lines = [line for line in terminal.text.splitlines() if "│" in line]
    assert {len(line) for line in lines} == {70}
    assert "\x1b[32m" in terminal.raw


def test_for_programs_each_step_is_an_object(tmp_path: Path) -> None:
    path = write(tmp_path / "talk.jsonl", *TALK)

    steps = json_lines("trace", "show", "--json", path)
    assert [step["kind"] for step in steps] == ["call", "notification", "response", "stray", "closed", "exit"]
    assert steps[0]["content"] == {"_meta": {"a": 1}, "x": [1, 2]}
    assert (steps[2]["content"], steps[2]["seconds"]) == (3, 0.002)


def test_only_some_methods_can_be_shown(tmp_path: Path) -> None:
    done = here("trace", "show", "-m", "tell", "-m", "nothing", write(tmp_path / "talk.jsonl", *TALK))

    assert [line.split()[0] for line in done.stdout.splitlines()] == ["NO", "2"]


def test_a_truncated_recording_is_shown_with_a_note(tmp_path: Path) -> None:
    torn = here("trace", "show", write(tmp_path / "torn.jsonl", *TALK, end=b'{"at":'))
    empty = here("trace", "show", write(tmp_path / "empty.jsonl"))

    assert (torn.exit_code, empty.exit_code) == (0, 0)
    assert "torn" in torn.stderr
    assert "no messages" in empty.stderr


@pytest.mark.parametrize(("text", "code"), [(None, 2), ("hello\n", 6)])
def test_a_file_that_is_not_a_recording_is_refused(tmp_path: Path, text: str | None, code: int) -> None:
    path = tmp_path / "talk.jsonl"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    for words in (["show", str(path)], ["replay", str(path), "--", "cat"]):
        done = here("trace", *words)
        assert done.exit_code == code
        assert str(path) in done.stderr


# -- replay


def lines_talk(*requested: tuple[int, list[int]]) -> list[TranscriptEntry]:
    """Returns a conversation with the echo in which each request has its response."""
    found: list[TranscriptEntry] = []
    for id, params in requested:
        found.append(FrameSent(0.0, CHILD, line(id=id, method="echo", params=params).strip()))
        found.append(FrameSent(0.0, HOST, line(id=id, result=params).strip()))
    return found


def test_a_program_that_responds_as_before_passes(tmp_path: Path) -> None:
    path = write(tmp_path / "talk.jsonl", *lines_talk((1, [1]), (2, [2])), framing="json-lines")
    done = becket("trace", "replay", path, "--", *python(ECHO))

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == ["goodbye", "2 messages compared, 0 differences"]


def test_a_real_conversation_is_replayed_without_a_host(tmp_path: Path) -> None:
    trace = tmp_path / "dice.jsonl"
    options = ["--root", str(EXTENSIONS), "--no-data", "--yes", "--trace", str(trace)]
    becket("call", *options, "dice", "roll", '{"dice": 20, "sides": 100}')
    program = ["--", "node", str(EXTENSIONS / "dice" / "dice.js")]

    differs = becket("trace", "replay", "--json", str(trace), *program)
    pointers = {one["pointer"] for one in json.loads(differs.stdout)["differences"]}
    assert differs.returncode == 1
    assert "/params/content" in pointers
    assert all(pointer == "/params/content" or pointer.startswith("/result/") for pointer in pointers)

    ignore = ["-i", "/params/content", "-i", "/result/content", "-i", "/result/thrown"]
    same = becket("trace", "replay", "--json", *ignore, str(trace), *program)
    assert same.returncode == 0
    assert json.loads(same.stdout) == {"compared": 5, "differences": []}


def test_differences_are_reported_with_both_values(tmp_path: Path) -> None:
    texts = lines_talk((1, [1]))
    texts[1] = FrameSent(0.0, HOST, line(id=1, result=[1, 2]).strip())
    done = becket("trace", "replay", write(tmp_path / "t.jsonl", *texts, framing="json-lines"), "--", *python(ECHO))

    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "entry 2: the response to 1 at /result: it is another",
        "  recorded: [1,2]",
        "  received: [1]",
    ]


def test_a_missing_message_times_out_and_the_rest_is_compared(tmp_path: Path) -> None:
    texts = [FrameSent(0.0, HOST, line(method="hello").strip()), *lines_talk((1, [1]))]
    path = write(tmp_path / "talk.jsonl", *texts, framing="json-lines")
    done = becket("trace", "replay", "--timeout", "0.2", path, "--", *python(ECHO))

    assert done.returncode == 1
    assert "the notification hello: not received within 0.2 s" in done.stdout
    assert "1 message compared, 1 difference" in done.stderr


def test_a_program_that_dies_is_reported_once_for_each_pending_response(tmp_path: Path) -> None:
    path = write(tmp_path / "talk.jsonl", *lines_talk((1, [1]), (2, [2])), framing="json-lines")
    done = becket("trace", "replay", "--json", path, "--", *python("import sys; sys.exit(3)"))

    problems = [one["problem"] for one in json.loads(done.stdout)["differences"]]
    assert len(problems) == 2
    assert all("exit code 3" in problem for problem in problems)


def test_additional_and_invalid_messages_of_a_program_are_differences(tmp_path: Path) -> None:
    more = f"print('{line(method='more').decode().strip()}', flush=True)\n{ECHO}"
    path = write(tmp_path / "talk.jsonl", *lines_talk((1, [1])), framing="json-lines")
    done = becket("trace", "replay", path, "--", *python(more))
    assert "the notification more: it is not in the recording" in done.stdout

    path = write(tmp_path / "other.jsonl", *lines_talk((1, [1])))
    done = becket("trace", "replay", path, "--", *python("print('hello there', flush=True); input()"))
    assert done.returncode == 1
    assert "hello there" in done.stdout


@pytest.mark.parametrize(
    "words",
    [["--ignore", "result", "FILE", "--", "cat"], ["FILE"], ["FILE", "--"], ["--timeout", "x", "FILE", "--", "a"]],
)
def test_an_invalid_command_line_is_refused(words: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "talk.jsonl")

    assert here("trace", "replay", *[path if word == "FILE" else word for word in words]).exit_code == 2


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    done = here("trace", "replay", write(tmp_path / "talk.jsonl"), "--", "no-such-program")

    assert done.exit_code == 5
    assert "no-such-program" in done.stderr


@pytest.mark.parametrize("command", [[], ["record"], ["show"], ["replay"]])
def test_help_has_an_example(command: list[str]) -> None:
    done = here("trace", *command, "--help")

    assert done.exit_code == 0
    assert "notes.jsonl" in done.stdout


# -- who may read a recording


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_recording_is_readable_only_by_its_user_even_if_the_file_existed(tmp_path: Path) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text("old\n", encoding="utf-8")
    old.chmod(0o644)
    before = os.umask(0)
    try:
        for file, options in ((tmp_path / "new.jsonl", []), (old, ["--overwrite"])):
            with recording(file, python("print(1)"), *options) as talk:
                talk.leave()
            assert mode_of(file) == 0o600
    finally:
        os.umask(before)
    assert "old" not in old.read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.parametrize("exists", [True, False])
def test_a_recording_is_never_written_through_a_link(tmp_path: Path, exists: bool) -> None:
    target, link = tmp_path / "precious", tmp_path / "trace.jsonl"
    if exists:
        target.write_text("precious", encoding="utf-8")
    link.symlink_to(target)

    done = becket("trace", "record", "--overwrite", str(link), "--", *python("print(1)"))
    assert done.returncode != 0
    assert str(link) in done.stderr
    with recording(link, python("print(1)")) as talk:
        talk.leave()

    assert (target.read_text(encoding="utf-8") if exists else target.exists()) == ("precious" if exists else False)
    assert mode_of(tmp_path / "trace.2.jsonl") == 0o600


def test_the_recording_of_a_running_host_is_readable_only_by_its_user(tmp_path: Path) -> None:
    done = becket(
        "run", str(EXTENSIONS), "--only", "notes", "--once", "--yes", "--no-data", "--trace", str(tmp_path / "t.jsonl")
    )

    assert done.returncode == 0, done.stderr
    files = [*tmp_path.glob("t.*.jsonl")]
    assert files
    assert {mode_of(file) for file in files} == {0o600}


# -- large files


def test_a_file_without_line_ends_is_refused_without_reading_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(4 * 1024**3)  # sparse: it takes no room

    done = here("trace", "show", str(path))

    assert done.exit_code != ExitCode.DONE
    assert "longer than" in done.stderr


def test_a_transcript_is_read_entry_by_entry(tmp_path: Path) -> None:
    read: list[int] = []

    def lines() -> Iterator[bytes]:
        yield b'{"transcript":1}\n'
        for number in range(5):
            read.append(number)
            yield b'{"at":%d,"to":"child","frame":{"id":%d}}\n' % (number, number)

    reader = TranscriptReader(lines())

    assert (len(reader.head.entries), read) == (1, [0])
    assert [entry.at for entry in reader] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_table_of_any_length_has_the_same_columns_as_a_short_one(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("1", "a"), ("22", "\x1b[2J"), ("", "ccc")]
    print_table(("no", "what"), rows)
    short = capsys.readouterr().out
    print_long_table(("no", "what"), lambda: iter(rows))

    assert capsys.readouterr().out == short
