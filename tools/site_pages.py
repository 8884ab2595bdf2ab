"""Writes the source of the documentation site: build/pages and build/mkdocs.yml, which the generator reads.

Pages in `docs/` link to files of the repository, so that they also work on a forge. On the site the README and its
neighbours are pages, every other linked file is shown on a page of its own, and the API reference has one page for each
module that `docs/index.md` names. This is done before the generator runs, so that any that reads mkdocs.yml will do.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from tools.markdown_links import find_links, is_relative, rewrite_links

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCES = ROOT / "src"
BUILD = ROOT / "build"
ROOT_PAGES = {
    "README.md": "start.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting-vulnerabilities.md",
}
BUILT_FOLDERS = {"__pycache__", "build", "node_modules", "target"}
LANGUAGES = {
    ".java": "java",
    ".js": "js",
    ".json": "json",
    ".md": "markdown",
    ".proto": "protobuf",
    ".py": "python",
    ".sh": "bash",
    ".toml": "toml",
    ".ts": "ts",
    ".xml": "xml",
}


def main() -> None:
    """Writes all pages and the configuration."""
    folder = BUILD / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    texts = {ROOT / source: page for source, page in ROOT_PAGES.items()}
    texts |= {page: page.name for page in sorted(DOCS.glob("*.md"))}
    pages = {name: site_text(page, name) for page, name in texts.items()}
    pages |= {shown_at(path): show_path(path) for path in sorted(linked_paths(texts))}
    pages |= {reference_of(module): reference_text(module) for module in public_modules()}
    for name, text in pages.items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    for picture in [*DOCS.glob("*.svg"), *DOCS.glob("*.png")]:
        shutil.copy(picture, folder)
    (BUILD / "mkdocs.yml").write_text(configuration(), encoding="utf-8")


def configuration() -> str:
    """Returns mkdocs.yml with the addresses of pyproject.toml, and with the API reference at the end of `nav`."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        addresses = tomllib.load(file)["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    lines = [(ROOT / "mkdocs.yml").read_text(encoding="utf-8").rstrip(), "  - API reference:"]
    lines += [f"      - {module.removeprefix('becket.')}: {reference_of(module)}" for module in public_modules()]
    keys = {"site_url": addresses["documentation"], "repo_url": addresses["repository"]}
    lines += [f"{key}: {address}" for key, address in keys.items() if address]
    return "\n".join([*lines, ""])


def site_text(page: Path, name: str) -> str:
    """Returns a page with links to pages of the site, and only the language behind each fence."""

    def point(link: re.Match[str]) -> str:
        target, _, anchor = link["target"].partition("#")
        path = repository_path(page.parent, target)
        if path is None:
            return link[0]
        address = os.path.relpath(page_for(path), os.path.dirname(name) or ".") + (anchor and f"#{anchor}")
        return f"{link['picture']}[{link['text']}]({address})"

    return rewrite_links(page.read_text(encoding="utf-8"), point, keep_words=False)


def repository_path(folder: Path, target: str) -> str | None:
    """Returns the path that a link names, from the top of the repository; None for other addresses."""
    if not target or not is_relative(target):
        return None
    path = Path(os.path.normpath(folder / target))
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) and path.exists() else None


def page_for(path: str) -> str:
    """Returns the page or picture of the site that shows a path of the repository."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else shown_at(path)


def linked_paths(pages: Iterable[Path]) -> set[str]:
    """Returns the linked files and folders that are no pages, and all that is in those folders."""
    found: set[str] = set()
    for page in pages:
        for link in find_links(page.read_text(encoding="utf-8")):
            path = repository_path(page.parent, link.partition("#")[0])
            if path is not None and path not in ROOT_PAGES and not path.startswith("docs"):
                found.add(path)
    for folder in [path for path in found if (ROOT / path).is_dir()]:
        found |= {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if is_shown(path)}
    return found


def is_shown(path: Path) -> bool:
    """Returns whether a path is text of the repository: not hidden, and not built by a compiler or an installation."""
    parts = path.relative_to(ROOT).parts
    is_hidden = any(part.startswith(".") for part in parts)
    is_built = any(part in BUILT_FOLDERS for part in (parts if path.is_dir() else parts[:-1]))
    return not (is_hidden or is_built) and (
        path.is_dir() or path.suffix in {*LANGUAGES, "", ".md", ".txt", ".yaml", ".yml", ".jsonl"}
    )


def shown_at(path: str) -> str:
    return f"files/{path}.md"


def show_path(path: str) -> str:
    """Returns a page that shows a file, or lists a folder."""
    here = ROOT / path
    head = f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
    if here.is_dir():
        names = sorted(entry.name for entry in here.iterdir() if is_shown(entry))
        return head + "\n".join(f"- [{name}]({here.name}/{name}.md)" for name in names) + "\n"
    text = here.read_text(encoding="utf-8")
    return f"{head}````{LANGUAGES.get(here.suffix, 'text')}\n{text}\n````\n"


def reference_of(module: str) -> str:
    return f"reference/{module}.md"


def reference_text(module: str) -> str:
    """Returns the page of a module. It lists the exports: the generator cannot see those that are found at run time."""
    members = "\n".join(f"        - {name}" for name in exported_names(module))
    return f"# {module}\n\n::: {module}\n    options:\n      members:\n{members}\n"


def exported_names(module: str) -> list[str]:
    """Returns what a module exports; nothing for one that only forwards deprecated names."""
    names: list[str] = [*getattr(import_module(module), "__all__", ())]
    if module == "becket.adapters.lsp":  # a name for each method of LSP, which its `__all__` has not
        names += import_module("becket.adapters.lsp.methods").__all__
    return names


def public_modules() -> list[str]:
    """Returns the modules that the table of imports names; `becket.contract.*` stands for each module in it.

    Modules that only forward deprecated names are left out."""
    table = (DOCS / "index.md").read_text(encoding="utf-8").partition("## Imports")[2]
    modules: list[str] = []
    for name in re.findall(r"^\| `(becket[\w.*]*)` \|", table, flags=re.MULTILINE):
        if name.endswith(".*"):
            modules += [f"{name[:-2]}.{file.stem}" for file in sorted(module_folder(name[:-2]).glob("[a-z]*.py"))]
        elif name == "becket.adapters":
            packages = sorted(file.parent.name for file in module_folder(name).glob("*/__init__.py"))
            modules += [f"{name}.{package}" for package in packages]
        else:
            modules.append(name)
    return [module for module in dict.fromkeys(modules) if exported_names(module)]


def module_folder(module: str) -> Path:
    return SOURCES.joinpath(*module.split("."))


if __name__ == "__main__":
    main()
