"""The wheel has those files of the kits that `becket new` writes into projects."""

from __future__ import annotations

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from becket.cli.support.languages import LANGUAGES, find_project_files, kit_folder

ROOT = Path(__file__).parents[2]


def test_a_wheel_has_the_files_of_projects_and_no_others_of_the_kits() -> None:
    shipped = (file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files())
    needed = (
        f"becket/sdk/{language}/{path.relative_to(kit_folder(language)).as_posix()}"
        for language in LANGUAGES
        for path in find_project_files(language).values()
    )

    assert sorted(name for name in shipped if name.startswith("becket/sdk/")) == sorted(needed)
