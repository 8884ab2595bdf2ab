"""The workflow files of public forges call targets of the Makefile and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs.pages import ROOT

GITHUB = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
GITLAB = ROOT / ".gitlab-ci.yml"
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


def load(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content


def github_commands() -> Iterator[str]:
    for file in GITHUB:
        for job in load(file)["jobs"].values():
            yield from (step["run"] for step in job["steps"] if "run" in step)


def gitlab_commands() -> Iterator[str]:
    for job in load(GITLAB).values():
        if isinstance(job, dict):
            yield from job.get("script", ())


def test_every_command_is_one_target_of_make() -> None:
    for command in [*github_commands(), *gitlab_commands()]:
        made = re.fullmatch(r"make ([a-z-]+)(?: PYTHON=python)?", command)
        assert made, command
        assert made[1] in TARGETS


def test_the_forges_run_the_same_targets() -> None:
    assert {"make test PYTHON=python", "make docs", "make release-check"} <= set(github_commands())
    assert set(github_commands()) == set(gitlab_commands())


def test_every_change_gets_the_release_check() -> None:
    github = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["check"]["steps"]

    assert "make release-check" in [step.get("run") for step in github]
    assert "make release-check" in load(GITLAB)["check"]["script"]
    assert "release-check" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").partition("set -e")[2]


@pytest.mark.parametrize(
    "form", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda form: form.stem
)
def test_every_issue_form_has_a_name_and_fields(form: Path) -> None:
    content = load(form)

    assert content["name"]
    assert content["description"]
    assert [field["id"] for field in content["body"] if field["type"] != "markdown"]
