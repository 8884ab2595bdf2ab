"""`becket run`: once for scripts, with lines without a terminal, with a live table on a terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import BECKET, EXTENSIONS, becket, write_extension
from tests.cli.terminals import CTRL_C, CTRL_Z, Terminal

from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.screen import WIDE, fit_rows
from becket.cli.support.status_table import HEADERS
from becket.host.starting.grants_file import GrantEntry, load_grants
from becket.testing.transcripts.file_format import ChildExited, FrameSent, LinkEnd, load_transcript

pytestmark = pytest.mark.process

QUIET = """
from becket import ExtensionServer

class Quiet(ExtensionServer):
    id, version = "quiet", "1.0.0"

if __name__ == "__main__":
    Quiet().run()
"""
# It needs a permission before it is called.
EAGER = """
from becket import ExtensionServer

class Eager(ExtensionServer):
    id, version = "eager", "1.0.0"

    async def on_start(self):
        await self.host.memory.append("I am here")

if __name__ == "__main__":
    Eager().run()
"""
BROKEN = "import sys; sys.exit('not today')"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_extension(tmp_path / "root", "quiet", QUIET)


# -- once


def test_once_starts_all_and_prints_a_table() -> None:
    done = becket("run", str(EXTENSIONS), "--no-data", "--yes", "--once", "--only", "notes", "--only", "census")

    header, *rows = done.stdout.splitlines()
    assert done.returncode == ExitCode.DONE
    assert header.split()[:4] == ["EXTENSION", "VERSION", "DIALECT", "STATE"]
    assert [row.split()[:4] for row in rows] == [[id, "1.0.0", "native", "ready"] for id in ("census", "notes")]


def test_once_is_json_for_programs(root: Path) -> None:
    write_extension(root, "broken", BROKEN)

    done = becket("run", str(root), "--no-data", "--once", "--json")

    received = json.loads(done.stdout)
    assert done.returncode == ExitCode.NOT_RUNNING
    assert {one["id"]: one["state"] for one in received["extensions"]} == {"quiet": "ready", "broken": "failed"}
    (quiet,) = [one for one in received["extensions"] if one["id"] == "quiet"]
    assert quiet["figures"]["calls"] == 0
    (problem,) = received["problems"]
    assert problem["extension"] == "broken"
    assert "not today" in problem["problem"]


def test_once_reports_problems_on_stderr(root: Path) -> None:
    write_extension(root, "greedy", QUIET, permissions=["memory.read"])
    (root / "bad").mkdir()
    (root / "bad" / "becket.toml").write_text("id =", encoding="utf-8")

    done = becket("run", str(root), "--no-data", "--once")

    assert done.returncode == ExitCode.NOT_RUNNING
    assert "becket run --yes" in done.stderr
    assert str(root / "bad" / "becket.toml") in done.stderr


@pytest.mark.parametrize("once", [["--once"], []])
def test_where_there_is_nothing_to_start_this_is_reported(tmp_path: Path, once: list[str]) -> None:
    done = becket("run", str(tmp_path), "--no-data", *once)

    assert done.returncode == ExitCode.NOT_FOUND
    assert str(tmp_path) in done.stderr


def test_a_second_host_of_the_same_files_is_refused(root: Path, tmp_path: Path) -> None:
    with Lines("run", str(root), "--data", str(tmp_path / "data")) as lines:
        lines.until("quiet: started")
        done = becket("run", str(root), "--data", str(tmp_path / "data"), "--once")

    assert done.returncode == ExitCode.FILES
    assert str(tmp_path / "data") in done.stderr
    assert len(done.stderr.splitlines()) == 1


# -- lines


class Lines:
    """A `becket` that keeps running without a terminal, and its output."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [*BECKET, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
        )

    def until(self, text: str) -> str:
        """Returns the next line with this text."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if text in line:
                return line
        raise AssertionError(f"it has ended without writing {text!r}")

    def end(self, number: int) -> int:
        """Sends a signal and returns the exit code."""
        self._process.send_signal(number)
        return self._process.wait(60)

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)]
)
def test_each_event_is_a_line_until_a_signal_ends_all_in_good_order(root: Path, number: int, code: ExitCode) -> None:
    with Lines("run", str(root), "--no-data") as lines:
        line = lines.until("quiet: started")
        assert re.match(r"\d\d:\d\d:\d\d quiet: started in [\d.]+ s, process \d+\n", line)
        os.kill(int(line.split()[-1]), signal.SIGKILL)
        lines.until("quiet: killed by SIGKILL")
        lines.until("quiet: restarted")
        assert lines.end(number) == code
        lines.until("quiet: stopped")


def test_each_event_is_a_json_object(root: Path) -> None:
    with Lines("run", str(root), "--no-data", "--json") as lines:
        received: Any = json.loads(lines.until("extension_started"))
        assert received["extension"] == "quiet"
        assert received["pid"] > 0


def test_changed_files_are_reported_and_reloaded(root: Path) -> None:
    with Lines("run", str(root), "--no-data", "--watch", "reload") as lines:
        lines.until("quiet: started")
        (root / "quiet" / "quiet.py").write_text(QUIET + "\n# more\n", encoding="utf-8")
        assert "quiet.py" in lines.until("quiet: changed on disk")
        lines.until("quiet: reloaded")


def test_grants_of_another_command_take_effect(root: Path, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    write_extension(root, "greedy", QUIET.replace("quiet", "greedy"), permissions=["memory.read"])
    with Lines("run", str(root), "--data", data) as lines:
        lines.until("greedy: refused")
        lines.until("quiet: started")
        assert becket("grant", "greedy", "--yes", "--root", str(root), "--data", data).returncode == ExitCode.DONE
        lines.until("greedy: started")
        assert becket("revoke", "greedy", "memory.read", "--data", data).returncode == ExitCode.DONE
        lines.until("greedy: memory.read revoked by grants.toml")


TALKER = QUIET.replace("quiet", "talker").replace(
    "if __name__", "import sys\nprint('WARNING:index:very old', file=sys.stderr, flush=True)\nif __name__"
)


def test_log_records_of_extensions_are_events_among_the_others(tmp_path: Path) -> None:
    write_extension(tmp_path, "talker", TALKER)
    with Lines("run", str(tmp_path), "--no-data", "--json", "--logs") as lines:
        received: Any = json.loads(lines.until("very old"))
    assert (received["event"], received["extension"], received["level"]) == ("extension_logged", "talker", "warning")


def test_log_records_of_extensions_are_lines_with_their_level(tmp_path: Path) -> None:
    write_extension(tmp_path, "talker", TALKER)
    with Lines("run", str(tmp_path), "--no-data", "--logs") as lines:
        assert re.fullmatch(r"[\d:]+ talker: warning: .*very old\n", lines.until("very old"))


def test_events_below_the_configured_level_are_not_shown(tmp_path: Path) -> None:
    write_extension(tmp_path / "root", "talker", TALKER)
    (tmp_path / "host.toml").write_text('roots = ["root"]\ndata = false\n[log]\nlevel = "error"\n', encoding="utf-8")
    with Lines("run", "--config", str(tmp_path / "host.toml"), "--logs") as lines:
        lines.until("talker: found")
        assert "talker: started" in lines.until("talker: ")


def test_messages_of_each_extension_are_recorded_in_a_file_for_each_start(root: Path, tmp_path: Path) -> None:
    write_extension(root, "talker", TALKER)
    with Lines("run", str(root), "--no-data", "--trace", str(tmp_path / "traces" / "run.jsonl")) as lines:
        pid = int(lines.until("quiet: started").split()[-1])
        os.kill(pid, signal.SIGKILL)
        lines.until("quiet: restarted")
        lines.end(signal.SIGINT)

    names = ["run.quiet.2.jsonl", "run.quiet.jsonl", "run.talker.jsonl"]
    assert sorted(path.name for path in (tmp_path / "traces").iterdir()) == names
    for name in names:
        transcript = load_transcript(tmp_path / "traces" / name)
        first = transcript.entries[0]
        assert isinstance(first, FrameSent)
        assert (first.to, b'"initialize"' in first.body) == (LinkEnd.CHILD, True)
    assert isinstance(transcript.entries[-1], ChildExited)
    shown = becket("trace", "show", str(tmp_path / "traces" / "run.quiet.2.jsonl"))
    assert "initialize" in shown.stdout


def test_the_command_ends_where_nothing_runs(tmp_path: Path) -> None:
    write_extension(tmp_path, "broken", BROKEN)

    done = becket("run", str(tmp_path), "--no-data")

    assert done.returncode == ExitCode.NOT_RUNNING
    assert "broken: failed: ended before it was ready" in done.stdout


def test_stderr_of_an_extension_goes_to_stderr(tmp_path: Path) -> None:
    write_extension(tmp_path, "broken", BROKEN)
    (tmp_path / "host.toml").write_text('roots = ["."]\ndata = false\n[log]\nform = "json"', encoding="utf-8")

    done = becket("run", "--config", str(tmp_path / "host.toml"))

    logged = json.loads(done.stderr.splitlines()[0])
    assert (logged["logger"], logged["message"]) == ("broken", "not today")


# -- on a terminal


def test_a_table_shows_the_state_of_all_extensions_and_ctrl_c_ends_it(root: Path) -> None:
    with Terminal([*BECKET, "run", str(root), "--no-data", "--yes"], columns=140) as terminal:
        terminal.expect("quiet: started")
        terminal.expect("restarts")
        terminal.expect("ready")
        pid = re.findall(r"process (\d+)", terminal.text)[0]
        os.kill(int(pid), signal.SIGKILL)
        terminal.expect("quiet: killed by SIGKILL")
        terminal.expect("quiet: restarted")
        terminal.expect_seen("| quiet ~ ready ~ 1")
        terminal.type(CTRL_C)
        assert terminal.end() == ExitCode.INTERRUPTED

    rows = re.findall(r"quiet +1\.0\.0 +native +(\w+) .* (\d) *\n", terminal.text)
    assert ("ready", "0") in rows
    assert ("ready", "1") in rows
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize(
    ("response", "code"), [("y", ExitCode.INTERRUPTED), ("n", ExitCode.NOT_RUNNING), ("", ExitCode.NOT_RUNNING)]
)
def test_the_user_is_prompted_before_an_extension_runs_for_the_first_time(
    tmp_path: Path, response: str, code: ExitCode
) -> None:
    root = write_extension(tmp_path / "root", "quiet", QUIET, permissions=["memory.read"])
    command = [*BECKET, "run", str(root), "--data", str(tmp_path / "data")]
    with Terminal(command, columns=200) as terminal:
        terminal.expect("quiet 1.0.0 wants to run")
        terminal.expect("memory.read")
        terminal.expect("agree? [y/N]")
        terminal.enter(response)
        terminal.expect("quiet: started" if response == "y" else "quiet: refused")
        if response == "y":
            terminal.type(CTRL_C)
        assert terminal.end() == code

    entry = load_grants(tmp_path / "data" / "grants.toml").get("quiet", GrantEntry())
    assert entry.allow == (("memory.read",) if response == "y" else ())
    assert bool(entry.refused) is (response == "n")


def test_the_user_is_also_prompted_for_an_extension_without_requests(root: Path) -> None:
    with Terminal([*BECKET, "run", str(root), "--no-data"], columns=200) as terminal:
        terminal.expect("quiet 1.0.0 wants to run")
        terminal.expect("it requests no permission")
        terminal.expect("agree? [y/N]")
        terminal.enter("n")
        terminal.expect("quiet: refused")
        assert terminal.end() == ExitCode.NOT_RUNNING


def test_a_prompt_can_be_left_with_ctrl_c(tmp_path: Path) -> None:
    root = write_extension(tmp_path / "root", "quiet", QUIET, permissions=["memory.read"])
    with Terminal([*BECKET, "run", str(root), "--no-data"]) as terminal:
        terminal.expect("agree? [y/N]")
        terminal.type(CTRL_C)
        assert terminal.end() == ExitCode.INTERRUPTED

    assert "Traceback" not in terminal.text


def test_a_prompt_without_a_decision_is_a_refusal(tmp_path: Path) -> None:
    root = write_extension(tmp_path / "root", "quiet", QUIET, permissions=["memory.read"])
    (tmp_path / "host.toml").write_text(f'roots = ["{root}"]\ndata = false\nask = 0.1', encoding="utf-8")
    with Terminal([*BECKET, "run", "--config", str(tmp_path / "host.toml")]) as terminal:
        terminal.expect("agree? [y/N]")
        terminal.expect("no decision in time: refused")
        assert terminal.end() == ExitCode.NOT_RUNNING


def test_there_is_no_prompt_if_the_configuration_disables_it(tmp_path: Path) -> None:
    root = write_extension(tmp_path / "root", "quiet", QUIET, permissions=["memory.read"])
    (tmp_path / "host.toml").write_text(f'roots = ["{root}"]\ndata = false\nask = false', encoding="utf-8")
    with Terminal([*BECKET, "run", "--config", str(tmp_path / "host.toml")]) as terminal:
        assert terminal.end() == ExitCode.NOT_RUNNING

    assert "agree?" not in terminal.text


def test_a_prompt_during_the_table_is_shown_below_it(tmp_path: Path) -> None:
    root = write_extension(tmp_path / "root", "eager", EAGER, permissions=["memory.write", "tools.register"])
    write_extension(root, "quiet", QUIET, permissions=["tools.register"])
    command = [*BECKET, "run", str(root), "--no-data"]
    command += ["--grant", "eager=tools.register", "--grant", "quiet=tools.register"]
    with Terminal(command, columns=140) as terminal:
        terminal.expect("memory.write")
        terminal.expect("[y/N]")
        terminal.enter("y")
        terminal.expect("eager: started")
        terminal.type(CTRL_C)
        assert terminal.end() == ExitCode.INTERRUPTED


# -- prompts


def test_the_table_stays_current_around_a_prompt_and_ctrl_c_restores_the_terminal(tmp_path: Path) -> None:
    root = write_extension(tmp_path / "root", "quiet", QUIET)
    write_extension(root, "asked", QUIET.replace("quiet", "asked"), permissions=["memory.read"])
    (tmp_path / "host.toml").write_text(
        f'roots = ["{root}"]\ndata = false\n[extensions.quiet]\nallow = []\n', encoding="utf-8"
    )
    with Terminal([*BECKET, "run", "--config", "host.toml"], folder=tmp_path, columns=50, rows=60) as terminal:
        assert terminal.has_echo
        terminal.expect_seen("""
            | extension   state     restarts   note
            | ───────────────────────────────────────────────
            | asked       stopped          0   waiting for c…
            | quiet       ready            0
            |
            |asked 1.0.0 wants to run:
            |~it requests the permission memory.read
            |agree? [y/N]
        """)
        assert not terminal.has_echo
        assert not terminal.picture.is_cursor_shown

        pid = re.findall(r"quiet: started in .*process (\d+)", terminal.text)[-1]
        os.kill(int(pid), signal.SIGKILL)
        terminal.type("nx\x7f\x7f\x1b[Ay")
        terminal.expect_seen("""
            |~ quiet: killed by SIGKILL
            |~ quiet: restarted after ~
            |
            | extension   state     restarts   note
            | ───────────────────────────────────────────────
            | asked       stopped          0   waiting for c…
            | quiet       ready            1
            |
            |asked 1.0.0 wants to run:
            |~it requests the permission memory.read
            |agree? [y/N] y
        """)
        terminal.enter("")
        terminal.expect_seen("""
            |agree? [y/N] y
            |~
            | extension   state   restarts   note
            | ───────────────────────────────────
            | asked       ready          0
            | quiet       ready          1
        """)
        terminal.type(CTRL_C)
        assert terminal.end() == ExitCode.INTERRUPTED
        assert terminal.has_echo
        assert terminal.picture.is_cursor_shown


def test_ctrl_c_in_a_prompt_restores_the_terminal(root: Path) -> None:
    with Terminal([*BECKET, "run", str(root), "--no-data"]) as terminal:
        terminal.expect("agree? [y/N]")
        assert not terminal.has_echo
        terminal.type(CTRL_C)
        assert terminal.end() == ExitCode.INTERRUPTED
        assert terminal.has_echo
        assert terminal.picture.is_cursor_shown


def test_ctrl_z_gives_the_terminal_back_and_fg_draws_anew(root: Path) -> None:
    command = shlex.join([*BECKET, "run", str(root), "--no-data"])
    # A shell with job control and without an editor for its lines, which would set the terminal up by itself.
    with Terminal(["/bin/sh", "-mc", f"{command}; echo back in the shell; read line; fg"]) as terminal:
        terminal.expect("agree? [y/N]")
        terminal.type(CTRL_Z)
        terminal.expect("back in the shell")
        assert terminal.has_echo
        assert terminal.picture.is_cursor_shown
        terminal.enter("on with it")
        terminal.expect("agree? [y/N]")
        assert not terminal.has_echo
        terminal.enter("y")
        terminal.expect("quiet: started")
        terminal.type(CTRL_C)
        assert terminal.end() == ExitCode.INTERRUPTED


def test_text_typed_before_a_prompt_is_not_a_decision(root: Path) -> None:
    with Terminal([*BECKET, "run", str(root), "--no-data"]) as terminal:
        terminal.type("y\ny\n")
        terminal.expect("agree? [y/N]")
        terminal.enter("n")
        terminal.expect("quiet: refused")
        assert terminal.end() == ExitCode.NOT_RUNNING


def test_a_prompt_that_is_higher_than_the_terminal_is_written_above_the_table(tmp_path: Path) -> None:
    root = write_extension(tmp_path / "root", "quiet", QUIET, permissions=["memory.read", "memory.write"])
    with Terminal([*BECKET, "run", str(root), "--no-data"], rows=8) as terminal:
        terminal.expect_seen("""
            |it requests the permission memory.write
            |
            | extension   state     calls/s   latency   restarts   note
            | ──~
            | quiet       stopped       0.0                    0   waiting for consent
            |
            |agree? [y/N]
        """)
        assert "quiet 1.0.0 wants to run: " in terminal.text
        terminal.enter("y")
        terminal.expect("quiet: started")


def test_more_extensions_than_there_is_room_for_are_counted(tmp_path: Path) -> None:
    for number in range(6):
        write_extension(tmp_path, f"quiet{number}", QUIET.replace("quiet", f"quiet{number}"))
    with Terminal([*BECKET, "run", str(tmp_path), "--no-data", "--yes"], rows=9) as terminal:
        terminal.expect_seen("""
            | extension   state   calls/s   latency   restarts   note
            | ───────────────────────────────────────────────────────
            | quiet0      ready       0.0                    0
            | quiet1      ready       0.0                    0
            | quiet2      ready       0.0                    0
            | quiet3      ready       0.0                    0
            |
            |2 more extensions
        """)


LONG_ID = "a-name-of-64-characters-" + "x" * 40


@pytest.mark.parametrize("words", [["run"], ["run", "--once"]])
def test_no_id_and_no_state_is_cut_at_50_columns(tmp_path: Path, words: list[str]) -> None:
    write_extension(tmp_path, LONG_ID, QUIET.replace("quiet", LONG_ID))
    with Terminal([*BECKET, *words, str(tmp_path), "--no-data", "--yes"], columns=50) as terminal:
        terminal.expect_seen(f"""
            | extension                                  state
            | ────────────────────────────────────────────────
            | {LONG_ID[:40]}   ready
            | {LONG_ID[40:]}
        """)


def test_a_list_without_room_for_its_columns_has_a_block_for_each_extension(tmp_path: Path) -> None:
    write_extension(tmp_path, LONG_ID, QUIET, permissions=["memory.read", "memory.write", "tools.register"])
    with Terminal([*BECKET, "list", ".", "--no-data", "--yes"], columns=50, folder=tmp_path) as terminal:
        terminal.expect_seen(f"""
            |{LONG_ID[:50]}
            |{LONG_ID[50:]}
            |  version      1.0.0
            |  dialect      native
            |  starts       yes
            |  permissions  memory.read, memory.write,
            |               tools.register
            |  folder       /~
        """)


# -- the table


ROWS = [
    HEADERS,
    ("notes", "1.0.0", "native", "ready", "17", "3", "20", "2.0", "1.5 ms", "2.0 ms", "40", "4.0", "0", "it was slow"),
]


@pytest.mark.parametrize("width", [60, 80, 110, 125, 130, 135, WIDE])
def test_every_row_fits_into_the_terminal_and_only_the_note_is_cut(width: int) -> None:
    headers, row = fit_rows(ROWS, width)

    shown = dict(zip(headers, row, strict=True))
    note = shown.pop(headers[-1])
    assert {"extension", "state", "restarts"} <= shown.keys()
    assert ("latency" in shown) is (width >= 80)
    assert shown.items() <= dict(zip(*ROWS, strict=True)).items()
    assert note == "it was slow" or note.endswith("…")
    assert sum(max(map(len, column)) + 3 for column in zip(headers, row, strict=True)) <= max(width, 70)
    assert ("pid" in shown) is (width >= 135)
