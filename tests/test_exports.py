"""The exports of `becket` are few, sorted, importable and documented."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from msgspec import Struct

import becket
from becket.host.host_settings import HostSettings

MAX_NAMES = 40  # more than a reader takes in at once; the rest is imported from its own module
NOT_EXPORTED = {"cli", "testing", "adapters"}


def test_all_has_no_name_twice_and_not_too_many() -> None:
    assert len(set(becket.__all__)) == len(becket.__all__) <= MAX_NAMES


@pytest.mark.parametrize("name", becket.__all__)
def test_each_name_resolves(name: str) -> None:
    assert hasattr(becket, name)


def test_dir_lists_every_name() -> None:
    assert set(becket.__all__) <= set(dir(becket))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(becket, "no_such_name")


@pytest.mark.parametrize("name", becket.__all__)
def test_no_name_comes_from_an_adapter_the_command_line_or_the_test_kit(name: str) -> None:
    module = getattr(getattr(becket, name), "__module__", None) or "becket"

    assert module.split(".")[1:2] not in [[layer] for layer in NOT_EXPORTED]


LAZY_PACKAGES = [
    "becket",
    "becket.adapters.cigen",
    "becket.adapters.lsp",
    "becket.adapters.mcp",
    "becket.adapters.roder",
    "becket.contract",
    "becket.extension",
    "becket.framing",
    "becket.host",
    "becket.json_schema",
    "becket.permissions",
    "becket.testing",
]


@pytest.mark.parametrize("name", LAZY_PACKAGES)
def test_type_checkers_see_exactly_the_exports_of_a_package(name: str) -> None:
    package = import_module(name)
    exports = {module: set(names.split()) for module, names in package.EXPORTS.items()}
    seen = imports_for_types(Path(package.__file__ or ""))
    if name == "becket.adapters.lsp":
        assert seen.pop("becket.adapters.lsp.methods") == {"*"}  # all of them, without a table
    for module, names in seen.items():
        if names == {"*"}:
            seen[module] = set(import_module(module).__all__)

    assert seen == exports
    assert all(hasattr(package, name) for name in package.__all__)


def classes_of(annotation: Any) -> Iterator[type]:
    """Yields the classes of becket's host in an annotation, and in the annotations of their members."""
    if isinstance(annotation, type) and annotation.__module__.startswith("becket.host."):
        yield annotation
        if issubclass(annotation, Struct):
            for member in get_type_hints(annotation).values():
                yield from classes_of(member)
    for argument in get_args(annotation):
        yield from classes_of(argument)


def test_each_class_that_a_setting_of_a_host_needs_is_exported_beside_the_host() -> None:
    needed = {cls.__name__ for cls in classes_of(HostSettings)}

    assert {"ExtensionConfig", "HookSettings", "Environment"} <= needed
    assert needed - set(import_module("becket.host").__all__) == set()


def imports_for_types(file: Path) -> dict[str, set[str]]:
    """Returns the names that a package imports under `if TYPE_CHECKING:`, by module."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    return {
        node.module or "": {alias.name for alias in node.names}
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    }


def test_the_version_is_the_installed_one() -> None:
    assert becket.__version__ == version("becket")


def unexplained(name: str, exported: object) -> Iterator[str]:
    """Yields the class or function itself, and those of its public methods and properties, that have no docstring."""
    if inspect.isclass(exported):
        if not exported.__dict__.get("__doc__"):
            yield name
        for member, value in vars(exported).items():
            is_code = callable(value) or isinstance(value, property | classmethod | staticmethod)
            # What overrides an explained method need not explain it again.
            is_explained = any(vars(base)[member].__doc__ for base in exported.__mro__ if member in vars(base))
            if is_code and not member.startswith("_") and not is_explained:
                yield f"{name}.{member}"
    elif callable(exported) and not inspect.getdoc(exported):
        yield name


def test_everything_exported_has_a_docstring() -> None:
    missing = [line for name in becket.__all__ for line in unexplained(name, getattr(becket, name))]

    assert missing == []


def test_every_module_that_is_not_empty_has_a_docstring() -> None:
    folder = Path(becket.__file__).parent
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in folder.rglob("*.py")}
    silent = [file for file, tree in trees.items() if tree.body and not ast.get_docstring(tree)]

    assert [str(file.relative_to(folder)) for file in silent] == []


def test_the_check_for_docstrings_finds_missing_ones() -> None:
    class Explained:
        """Has one."""

        def described(self) -> None:
            """Has one."""

        def bare(self) -> None: ...

        @property
        def hidden(self) -> int:
            return 1

    class Unexplained(Explained):
        def described(self) -> None: ...

    def silent() -> None: ...

    assert list(unexplained("Explained", Explained)) == ["Explained.bare", "Explained.hidden"]
    assert list(unexplained("Unexplained", Unexplained)) == ["Unexplained"]
    assert list(unexplained("silent", silent)) == ["silent"]
