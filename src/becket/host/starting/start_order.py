"""Start and stop order of extensions by their dependencies. Pure.

One that needs another starts when that one is ready, and stops before it. What cannot be ordered is reported, and does
not delay the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from becket.host.diagnostics import Diagnostic, ProblemCode

__all__ = ["StartOrder", "build_start_order", "find_dependents"]


class StartOrder(Struct, frozen=True):
    """Waves of extensions: those of one may start together, when those of the waves before are ready.

    `excluded` cannot start, and `diagnostics` has the reasons."""

    waves: tuple[tuple[str, ...], ...]
    excluded: frozenset[str] = frozenset()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def stop_waves(self) -> tuple[tuple[str, ...], ...]:
        """The waves of a shutdown: the last that started come first."""
        return tuple(tuple(reversed(wave)) for wave in reversed(self.waves))


def build_start_order(after: Mapping[str, Collection[str]]) -> StartOrder:
    """Returns in which order extensions start, each given with those that must be ready before it.

    One that needs a missing extension, or itself through others, is left out with all that need it."""
    waiting = {extension: set(needed) for extension, needed in after.items()}
    needed_by = invert_dependencies(after)
    waves: list[tuple[str, ...]] = []
    wave = sorted(extension for extension, needed in waiting.items() if not needed)
    while wave:
        waves.append(tuple(wave))
        ready: set[str] = set()
        for extension in wave:
            del waiting[extension]
            for dependent in needed_by.get(extension, ()):
                waiting[dependent].discard(extension)
                if not waiting[dependent]:
                    ready.add(dependent)
        wave = sorted(ready)
    diagnostics = [
        build_dependency_diagnostic(extension, needed, after) for extension, needed in sorted(waiting.items())
    ]
    return StartOrder(tuple(waves), frozenset(waiting), tuple(diagnostics))


def invert_dependencies(after: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """Returns for each extension those that need it."""
    needed_by: dict[str, list[str]] = {}
    for extension, needed in after.items():
        for other in set(needed):
            needed_by.setdefault(other, []).append(extension)
    return needed_by


def build_dependency_diagnostic(extension: str, needed: set[str], after: Mapping[str, Collection[str]]) -> Diagnostic:
    missing = sorted(other for other in needed if other not in after)
    if missing:
        return Diagnostic(
            code=ProblemCode.DEPENDENCY_MISSING,
            extension=extension,
            problem=f"needs {', '.join(missing)}, which is missing",
            hint="install and enable it, or take it out of `after`",
        )
    return Diagnostic(
        code=ProblemCode.DEPENDENCY_CYCLE,
        extension=extension,
        problem=f"needs {', '.join(sorted(needed))}, which cannot start before it, or not at all",
        hint="let no extension need itself through others in `after`",
    )


def find_dependents(extension: str, after: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Returns all that need an extension, also through others, in the order in which they start.

    They stop before it, last first, and start again when it is ready again."""
    needed_by = invert_dependencies(after)
    found: set[str] = set()
    to_visit = [extension]
    while to_visit:
        for dependent in needed_by.get(to_visit.pop(), ()):
            if dependent not in found:
                found.add(dependent)
                to_visit.append(dependent)
    return tuple(one for wave in build_start_order(after).waves for one in wave if one in found and one != extension)
