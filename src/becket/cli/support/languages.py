"""Projects in other languages, for `becket new`: what each gets of its kit, and what its author does next.

The kits are in `sdk/` of the repository, and in the wheel as `becket/sdk`. A project is the folder `template` of a kit
together with the files of the kit itself, so that it builds without a network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct

__all__ = [
    "LANGUAGES",
    "PYTHON",
    "ProjectLanguage",
    "build_language_files",
    "build_language_steps",
    "find_project_files",
    "kit_folder",
]

PYTHON: Final = "python"
TEMPLATE: Final = "template"
KIT_FOLDER: Final = "becket"  # of a project: what it gets of the kit is in there
HIDDEN: Final = {"gitignore": ".gitignore"}  # under its own name it would apply to the repository of becket
PLACEHOLDER: Final = re.compile(r"\{\{(id|quoted_id|module|name|command)\}\}")


class ProjectLanguage(Struct, frozen=True, kw_only=True):
    """What a project gets of its kit: the files below `root` that match `files` and not `without`. `steps` are command
    lines for the author, each with what it does; the same names as in templates are filled in."""

    files: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]
    root: str = "."
    without: tuple[str, ...] = ()


LANGUAGES: Final[Mapping[str, ProjectLanguage]] = MappingProxyType(
    {
        "typescript": ProjectLanguage(
            root="dist",
            files=("*.js", "*.d.ts"),
            steps=(
                ("becket check -- node main.js", "check that it is a valid extension"),
                ("becket run --yes --development", "run it in a host"),
                ("npm install && npm run build", "after a change of main.ts"),
            ),
        ),
        "go": ProjectLanguage(
            files=("*.go",),
            without=("*_test.go",),
            steps=(
                ("go build -o build/ .", "build it; it needs Go 1.23 and no network"),
                ("go test ./...", "run its test"),
                ("becket check -- ./build/{{module}}", "check that it is a valid extension"),
                ("becket run --yes --development", "run it in a host"),
            ),
        ),
        "rust": ProjectLanguage(
            files=("Cargo.toml", "README.md", "src/**/*.rs"),
            steps=(
                ("./build", "test and build it; with --offline, cargo must have serde already"),
                ("becket check -- ./run", "check that it is a valid extension"),
                ("becket run --yes --development", "run it in a host"),
            ),
        ),
    }
)


def kit_folder(language: str) -> Path:
    """Returns the folder of a kit: that of the installed package, or of the checkout."""
    here = Path(__file__).resolve()
    shipped = here.parents[2] / "sdk"
    return (shipped if shipped.is_dir() else here.parents[4] / "sdk") / language


def find_project_files(language: str) -> dict[str, Path]:
    """Returns the files that make a project, by their names in it. The wheel has these of a kit, and no others."""
    chosen, kit = LANGUAGES[language], kit_folder(language)
    template, root = kit / TEMPLATE, kit / chosen.root
    files: dict[str, Path] = {}
    for path in sorted(each for each in template.rglob("*") if each.is_file()):
        place = path.relative_to(template)
        files[place.with_name(HIDDEN.get(place.name, place.name)).as_posix()] = path
    dropped = {path for pattern in chosen.without for path in root.glob(pattern)}
    for path in sorted({path for pattern in chosen.files for path in root.glob(pattern)} - dropped):
        files[f"{KIT_FOLDER}/{path.relative_to(root).as_posix()}"] = path
    return files


def build_language_files(language: str, names: Mapping[str, str]) -> dict[str, str]:
    """Returns the files of a project: its template, with `{{id}}` and the other names filled in, and its kit."""
    files: dict[str, str] = {}
    for name, path in find_project_files(language).items():
        text = path.read_text(encoding="utf-8")
        is_of_kit = name.startswith(f"{KIT_FOLDER}/")
        files[fill(name, names)] = text if is_of_kit else fill(text, names)
    return files


def build_language_steps(language: str, names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Returns what the author of a project does next: command lines, each with what it does."""
    return tuple((fill(line, names), aim) for line, aim in LANGUAGES[language].steps)


def fill(text: str, names: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda found: names[found[1]], text)
