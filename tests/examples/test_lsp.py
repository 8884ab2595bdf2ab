"""The examples with language servers: diagnostics of a file, and a custom server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.adapters.lsp.servers import command, needs_servers
from tests.examples.example_programs import EXAMPLES, run_example

pytestmark = [pytest.mark.process, pytest.mark.slow]

SPELLING = str(EXAMPLES / "lsp" / "spelling_server.py")


@needs_servers
def test_a_real_server_reports_the_errors_of_a_python_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n\nprint(undefined)\n", encoding="utf-8")

    done = run_example("lsp/diagnose.py", "a.py", *command("pylsp"), folder=tmp_path)

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "a.py:1:1: warning: 'os' imported but unused",
        "    import os",
        "a.py:3:7: error: undefined name 'undefined'",
        "    print(undefined)",
    ]


def test_a_server_of_pygls_runs_on_becket(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("All is well.\nParis in the the spring.\n", encoding="utf-8")

    done = run_example("lsp/diagnose.py", "a.md", sys.executable, SPELLING, folder=tmp_path, FORCE_COLOR="1")

    assert done.returncode == 1
    assert done.stdout.splitlines() == ["a.md:2:10: warning: `the` stands here twice", "    Paris in the the spring."]
    assert "Reading" in done.stderr  # the bar, since rich is set to draw for a terminal


def test_the_error_for_a_missing_server_shows_how_to_install_one(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("All is well.\n", encoding="utf-8")

    done = run_example("lsp/diagnose.py", "a.md", "no-such-server", folder=tmp_path)

    assert done.returncode == 2
    assert "pip install python-lsp-server" in done.stderr


def test_a_missing_file_is_reported_in_one_line(tmp_path: Path) -> None:
    done = run_example("lsp/diagnose.py", "a.md", "no-such-server", folder=tmp_path)

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No such file" in done.stderr
