"""Commit messages have a component, a short summary and a body; a hook of pre-commit refuses others."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.docs.pages import ROOT
from tools.commit_message import main, message_problems

GOOD = "peer: drop a reply that arrives after its timeout\n\nThe caller has left, and the id may be used again.\n"


def count_problems(message: str) -> int:
    return len(list(message_problems(message)))


@pytest.mark.parametrize(
    "message",
    [
        GOOD,
        f"# a comment\n{GOOD}# On branch main\n",
        "a" * 10 + ": " + "b" * 60 + "\n\nwhy\n",
        "Merge branch 'main' into topic\n",
        "fixup! peer: drop a reply\n",
    ],
    ids=["ours", "with comments", "72 characters", "a merge", "a fixup"],
)
def test_a_message_with_component_summary_and_body_is_accepted(message: str) -> None:
    assert count_problems(message) == 0


@pytest.mark.parametrize(
    ("message", "count"),
    [
        ("Drop late replies\n\nwhy\n", 1),
        ("peer, host: drop late replies\n\nwhy\n", 1),
        ("peer:drop late replies\n\nwhy\n", 1),
        ("a" * 10 + ": " + "b" * 61 + "\n\nwhy\n", 1),
        ("peer: drop late replies\n", 1),
        ("peer: drop late replies\n\n# only a comment\n", 1),
        ("peer: drop late replies\n\n# ------------------------ >8 ------------------------\ndiff --git\n", 1),
        ("peer: drop late replies\nwhy\n", 1),
        ("", 2),
    ],
    ids=[
        "no component",
        "two components",
        "no space",
        "73 characters",
        "no body",
        "a comment as body",
        "a diff as body",
        "no empty line",
        "empty",
    ],
)
def test_each_problem_of_a_message_is_reported(message: str, count: int) -> None:
    assert count_problems(message) == count


def test_the_program_fails_for_a_message_with_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text(GOOD, encoding="utf-8")
    assert main(str(file)) == 0
    assert capsys.readouterr().err == ""

    file.write_text("Drop late replies\n", encoding="utf-8")
    assert main(str(file)) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_only_this_hook_reads_the_commit_message() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]

    assert "commit-msg" in config["default_install_hook_types"]
    assert config["default_stages"] == ["pre-commit"]
    assert [hook["entry"] for hook in hooks if hook.get("stages") == ["commit-msg"]] == [
        ".venv/bin/python -m tools.commit_message"
    ]
