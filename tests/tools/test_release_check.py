"""The checks before a release: what they accept, and what they report."""

from __future__ import annotations

import pytest
from tools.release_check import (
    IN_SDIST,
    IN_WHEEL,
    changelog_problems,
    metadata_problems,
    sdist_problems,
    version_problems,
    wheel_problems,
)

PYPROJECT = '[project]\nversion = "0.2.0"\n'
METADATA = "Version: 0.2.0\nDescription-Content-Type: text/markdown\n\nSee [peers](https://example.org/peer.md).\n"


def test_equal_versions_are_accepted() -> None:
    assert list(version_problems(PYPROJECT, '__version__ = "0.2.0"\n')) == []


@pytest.mark.parametrize("package", ['__version__ = "0.1.0"\n', ""])
def test_a_package_of_another_version_is_reported(package: str) -> None:
    (problem,) = version_problems(PYPROJECT, package)
    assert "0.2.0" in problem


def test_a_changelog_that_begins_with_the_version_is_accepted() -> None:
    assert list(changelog_problems("# Changelog\n\n## 0.2.0\n\n### Added\n\n- A.\n\n## 0.1.0\n\n- B.\n", "0.2.0")) == []


@pytest.mark.parametrize(
    "changelog",
    [
        "# Changelog\n",
        "# Changelog\n\n## Unreleased\n\n- A.\n\n## 0.1.0\n\n- B.\n",
        "# Changelog\n\n## 0.2.0\n\n## 0.1.0\n\n- B.\n",
        "# Changelog\n\n## 0.2.0.dev1\n\n- A.\n",
    ],
    ids=["empty", "unreleased", "without-entries", "another"],
)
def test_a_changelog_without_entries_for_the_version_is_reported(changelog: str) -> None:
    assert len(list(changelog_problems(changelog, "0.2.0"))) == 1


def test_good_metadata_is_accepted() -> None:
    assert list(metadata_problems(METADATA, "0.2.0")) == []


def test_bad_metadata_is_reported() -> None:
    metadata = METADATA.replace("0.2.0", "0.1.0").replace("text/markdown", "text/plain").replace("https://", "")
    assert len(list(metadata_problems(metadata, "0.2.0"))) == 3


def test_a_whole_wheel_is_accepted() -> None:
    assert list(wheel_problems([*IN_WHEEL, "becket-0.2.0.dist-info/METADATA"])) == []


def test_a_wheel_that_lacks_a_file_or_has_others_is_reported() -> None:
    problems = list(wheel_problems([*IN_WHEEL[1:], "tests/conftest.py"]))

    assert problems == [f"wheel: lacks {IN_WHEEL[0]}", "wheel: has tests/conftest.py, which is not part of the package"]


def test_a_source_archive_is_checked_in_the_same_way() -> None:
    assert list(sdist_problems(IN_SDIST)) == []
    assert len(list(sdist_problems([*IN_SDIST[1:], ".venv/bin/python"]))) == 2
