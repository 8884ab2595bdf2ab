"""The page "Upgrading from 0.1" has every public name that is gone, and each new name exists."""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT, read_table

from becket.errors import MissingExtra

PAGE = ROOT / "docs" / "upgrading.md"
NAMES_OF_0_1 = Path(__file__).with_name("names_of_0_1.txt").read_text(encoding="utf-8").split()
"""What the modules exported that the documentation of 0.1 named as public."""
NAMED_BY_THE_INDEX = {
    "becket",
    "becket.blocking",
    "becket.contract",
    "becket.dialects",
    "becket.errors",
    "becket.extension",
    "becket.host",
    "becket.host.events",
    "becket.interop.mcp",
    "becket.methods.descriptors",
    "becket.methods.permissions",
    "becket.methods.streams",
    "becket.stores.in_memory",
    "becket.testing",
    "becket.typed.schema_files",
    "becket.wire",
}
"""Modules under "Imports" in `docs/index.md` of 0.1. It also named every module of these packages:"""
PACKAGES_NAMED_BY_THE_INDEX = ("becket.contract.", "becket.dialects.")
FORWARDED = [
    name
    for name in NAMES_OF_0_1
    if (module := name.rpartition(".")[0]) in NAMED_BY_THE_INDEX or module.startswith(PACKAGES_NAMED_BY_THE_INDEX)
]
RENAMED = {
    old.strip("`"): new.strip("`")
    for heading in ("Modules", "Classes and functions")
    for old, new in read_table(PAGE, heading)
}
REMOVED = "removed"
MEMBERS = [
    (kind, name)
    for _, new in read_table(PAGE, "Methods, attributes and arguments")
    for kind, name in re.findall(r"`([A-Z]\w+)\.(\w+)`", new)
]


def resolve(dotted: str) -> Any:
    """Returns the module, or the name in a module, that a dotted name stands for.

    Raises:
        ImportError, AttributeError: there is none."""
    try:
        return import_module(dotted)
    except ModuleNotFoundError:
        module, _, name = dotted.rpartition(".")
        return getattr(import_module(module), name)


def exists(dotted: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            resolve(dotted)
        except (ImportError, AttributeError):
            return False
        except MissingExtra:
            return True
    return True


def test_every_new_name_exists() -> None:
    assert [new for new in sorted(set(RENAMED.values()) - {REMOVED}) if not exists(new)] == []


def test_every_public_name_of_0_1_still_works_or_is_on_the_page() -> None:
    def is_covered(name: str) -> bool:
        module, _, last = name.rpartition(".")
        return name in RENAMED or exists(name) or (module in RENAMED and exists(f"{RENAMED[module]}.{last}"))

    assert [name for name in NAMES_OF_0_1 if not is_covered(name)] == []


def find_forwarding_problem(name: str) -> str | None:
    """Returns what is wrong with a name of 0.1 that must work in this release, or None."""
    module, _, last = name.rpartition(".")
    new = RENAMED.get(name) or f"{RENAMED.get(module, module)}.{last}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = getattr(import_module(module), last)
        except (ImportError, AttributeError) as error:
            return f"{name}: {error}"
    kinds = [warning.category for warning in caught]
    if kinds != ([] if new == name else [DeprecationWarning]):
        return f"{name} is {new}, with the warnings {kinds}"
    if new != REMOVED and value is not resolve(new):
        return f"{name} is another object than {new}"
    return None


def test_every_name_of_a_module_that_the_index_of_0_1_named_works_with_a_warning_if_it_has_changed() -> None:
    assert len(FORWARDED) > 700
    assert [problem for name in FORWARDED if (problem := find_forwarding_problem(name))] == []


def test_a_name_that_is_not_forwarded_is_noticed() -> None:
    assert find_forwarding_problem("becket.contract.sidecar.NoSuchName")
    assert find_forwarding_problem("becket.no_such_module.Name")


def test_the_table_of_the_changelog_agrees_with_the_page() -> None:
    rows = [(old.strip("`"), new.strip("`")) for old, new in read_table(ROOT / "CHANGELOG.md", "Names and texts")]

    assert len(rows) > 30
    assert [(old, new) for old, new in rows if RENAMED.get(old) != new] == []


def test_every_new_member_belongs_to_a_class_that_is_there() -> None:
    sources = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))

    assert len(MEMBERS) > 20
    assert [kind for kind, _ in MEMBERS if not re.search(rf"^class {kind}\b", sources, flags=re.MULTILINE)] == []
    assert [name for _, name in MEMBERS if not re.search(rf"\b(def {name}\(|{name}:|{name} =)", sources)] == []
