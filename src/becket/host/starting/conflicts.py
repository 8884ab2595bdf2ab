"""Conflicts between candidates: folders within each other, one id twice, variables that two of them would read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from becket._text import quote_path
from becket.dialects import DIALECTS
from becket.dialects.host_defaults import STANDARD_HOST_DEFAULTS, Duplicates
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.starting.candidate import Candidate, build_diagnostic
from becket.host.starting.configuration import system_variable_for, variable_for

__all__ = ["drop_duplicates", "drop_nested", "prune_nested", "withhold_shared_variables"]


def prune_nested(folders: Iterable[str], owned: Collection[str]) -> list[str]:
    """Returns the folders that are in none of the owned ones; itself does not count. It takes N times their depth."""
    return [folder for folder in folders if find_owner(folder, owned) is None]


def find_owner(folder: str, owned: Collection[str]) -> str | None:
    """Returns the nearest owned folder above this one."""
    above = os.path.dirname(folder)
    while above != folder:
        if above in owned:
            return above
        folder, above = above, os.path.dirname(above)
    return None


def drop_nested(found: list[Candidate], owned: set[str], notes: list[Diagnostic]) -> list[Candidate]:
    """Returns those that are in no other's folder, each folder once: roots may be in extensions, and in each other."""
    top = set(prune_nested((candidate.folder for candidate in found), owned))
    remaining: dict[tuple[str, str, int], Candidate] = {}
    entries = Counter[tuple[int, str, str]]()  # a list may name an id twice
    for candidate in found:
        if candidate.folder not in top:
            owner = find_owner(candidate.folder, owned)
            problem = f"is in the folder of another extension: {quote_path(owner or '')}"
            notes.append(build_diagnostic(candidate, ProblemCode.NESTED, problem, "move it out of there to start it"))
        else:
            entry = candidate.root, candidate.manifest_path, candidate.id
            remaining.setdefault((candidate.manifest_path, candidate.id, entries[entry]), candidate)
            entries[entry] += 1
    return list(remaining.values())


def drop_duplicates(found: list[Candidate], later_root_wins: bool, notes: list[Diagnostic]) -> list[Candidate]:
    """Returns one candidate for each id."""
    same: dict[str, list[Candidate]] = {}
    for candidate in sorted(found, key=lambda one: (one.root, one.manifest_path)):
        same.setdefault(candidate.id, []).append(candidate)
    return [choose_twin(twins, later_root_wins, notes) for twins in same.values()]


def choose_twin(twins: list[Candidate], later_root_wins: bool, notes: list[Diagnostic]) -> Candidate:
    """Returns the one of several extensions with one id that their system uses; they come by root, path and entry."""
    rule = duplicates_of(twins) if later_root_wins else "first"
    last = [candidate for candidate in twins if candidate.root == twins[-1].root]
    taken = twins[0] if rule in ("first", "first, others are errors") else last[-1 if rule == "last" else 0]
    severity = Severity.ERROR if rule == "first, others are errors" else Severity.WARNING
    for candidate in twins:
        if candidate is not taken:
            problem = f"has the same id as {quote_path(taken.manifest_path)}, which is used"
            hint = "give one of them another id"
            notes.append(build_diagnostic(candidate, ProblemCode.ID_TAKEN, problem, hint, severity))
    return taken


def duplicates_of(twins: list[Candidate]) -> Duplicates:
    dialect, *others = {candidate.manifest.dialect for candidate in twins}
    known = DIALECTS.get(dialect)
    return STANDARD_HOST_DEFAULTS.duplicates if others or known is None else known.host_defaults.duplicates


def withhold_shared_variables(found: list[Candidate], notes: list[Diagnostic]) -> list[Candidate]:
    """Returns the candidates with the variables of their system that are ambiguous between two of them."""
    owners: dict[str, dict[str, str]] = {}  # the keys of extensions, by variable and id
    for candidate in found:
        dialect = DIALECTS.get(candidate.manifest.dialect)
        defaults = STANDARD_HOST_DEFAULTS if dialect is None else dialect.host_defaults
        for key in candidate.manifest.config:
            name = system_variable_for(candidate.id, key, defaults)
            if name is not None:
                owners.setdefault(name, {})[candidate.id] = key
    shared = {name: keys for name, keys in owners.items() if len(keys) > 1}
    if not shared:
        return found
    for name, keys in shared.items():
        meant = " and ".join(f"`{key}` of {id}" for id, key in sorted(keys.items()))
        safe = " or ".join(f"`{variable_for(id, key)}`" for id, key in sorted(keys.items()))
        problem = f"the variable `{name}` could be meant for {meant}, and neither gets it"
        notes.append(
            Diagnostic(code=ProblemCode.SETTING_INVALID, problem=problem, hint=f"set {safe}", severity=Severity.WARNING)
        )
    return [
        replace(one, shared_variables=frozenset(name for name, keys in shared.items() if one.id in keys))
        for one in found
    ]
