"""Checks what a release needs: one version everywhere, its changelog, and the contents of wheel and source archive.

`python -m tools.release_check build/dist` prints one line for each problem. Each check is a function of texts or names.
"""

from __future__ import annotations

import re
import sys
import tarfile
import tomllib
from collections.abc import Collection, Iterator
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

from tools.markdown_links import find_links, is_relative

__all__ = ["changelog_problems", "metadata_problems", "sdist_problems", "version_problems", "wheel_problems"]

ROOT = Path(__file__).parents[1]
IN_WHEEL = (
    "becket/__init__.py",
    "becket/py.typed",
    "becket/cli/entry.py",
    "becket/schemas/envelope.schema.json",
    "becket/schemas/openrpc.json",
    "becket/sdk/typescript/dist/index.js",
    "becket/sdk/typescript/template/main.ts",
)
IN_SDIST = (
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "benchmarks/README.md",
    "docs/index.md",
    "examples/demo.py",
    "pyproject.toml",
    "tests/conftest.py",
    "tools/package_metadata.py",
)


def version_problems(pyproject: str, package: str) -> Iterator[str]:
    """Compares the version in pyproject.toml with `__version__` of the package."""
    declared = tomllib.loads(pyproject)["project"]["version"]
    own = re.search(r'^__version__ = "(.+)"$', package, re.MULTILINE)
    if own is None or own[1] != declared:
        yield f"src/becket/__init__.py: the version is {own[1] if own else 'missing'}, and {declared} in pyproject.toml"


def changelog_problems(changelog: str, version: str) -> Iterator[str]:
    """Looks for the section of a version, which must be the first one and have entries."""
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    first, _, entries = sections[0].partition("\n") if sections else ("", "", "")
    if first.split(" ")[0] != version:
        yield f"CHANGELOG.md: the first section is `{first}`: rename it to {version}"
    elif not re.search(r"^- ", entries, re.MULTILINE):
        yield f"CHANGELOG.md: the section {version} has no entries"


def metadata_problems(metadata: str, version: str) -> Iterator[str]:
    """Checks the metadata of a built package: its version, and links of its README that lead nowhere on PyPI."""
    headers = HeaderParser().parsestr(metadata)
    if headers["Version"] != version:
        yield f"metadata: the version is {headers['Version']}, not {version}"
    if headers["Description-Content-Type"] != "text/markdown":
        yield "metadata: the README is not marked as Markdown"
    for link in find_links(str(headers.get_payload())):
        if is_relative(link):
            yield f"README.md: the link `{link}` leads nowhere on PyPI"


def wheel_problems(names: Collection[str]) -> Iterator[str]:
    """Checks the names of the files in a wheel."""
    yield from (f"wheel: lacks {name}" for name in IN_WHEEL if name not in names)
    for name in names:
        top = name.partition("/")[0]
        if top != "becket" and not top.endswith(".dist-info"):
            yield f"wheel: has {name}, which is not part of the package"


def sdist_problems(names: Collection[str]) -> Iterator[str]:
    """Checks the names of the files in a source archive, without its top folder."""
    yield from (f"source archive: lacks {name}" for name in IN_SDIST if name not in names)
    yield from (f"source archive: has {name}" for name in names if name.startswith((".venv", "build/")))


def check_release(dist: Path) -> list[str]:
    """Returns all problems of the packages in a folder, and of the files that they were built from."""
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = tomllib.loads(pyproject)["project"]["version"]
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(f"becket-{version}.dist-info/METADATA").decode()
    with tarfile.open(sdist) as source:
        members = [name.partition("/")[2] for name in source.getnames()]
    return [
        *version_problems(pyproject, (ROOT / "src" / "becket" / "__init__.py").read_text(encoding="utf-8")),
        *changelog_problems((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version),
        *metadata_problems(metadata, version),
        *wheel_problems(names),
        *sdist_problems(members),
    ]


if __name__ == "__main__":
    problems = check_release(Path(sys.argv[1]))
    print("\n".join(problems) or "The release can be published.")
    sys.exit(bool(problems))
