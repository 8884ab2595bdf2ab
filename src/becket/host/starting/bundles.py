"""Extensions that another extension bundles in its manifest become candidates of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from becket._text import quote_path
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.starting.candidate import Candidate
from becket.host.starting.manifest_formats import MANIFEST_READERS
from becket.host.starting.manifest_reader import ManifestReader, ScopedFiles

__all__ = ["add_bundled"]


def add_bundled(
    found: Iterable[Candidate], notes: list[Diagnostic], readers: Sequence[ManifestReader] = MANIFEST_READERS
) -> list[Candidate]:
    """Returns the candidates, each followed by those that its manifest bundles, under ids that begin with its own.

    They start after it, and not at all without it."""
    candidates: list[Candidate] = []
    for candidate in found:
        candidates.append(candidate)
        for reader in readers:
            if reader.bundle_table and getattr(candidate.manifest, reader.bundle_table):
                candidates += find_bundled(candidate, reader, notes)
    return candidates


def find_bundled(owner: Candidate, reader: ManifestReader, notes: list[Diagnostic]) -> list[Candidate]:
    nearby = ScopedFiles(owner.folder, owner.folder)
    listing = reader.list_bundle(getattr(owner.manifest, reader.bundle_table), f"{owner.id}.", nearby)
    notes += [
        Diagnostic(
            code=ProblemCode.MANIFEST_INVALID,
            extension=owner.id,
            path=quote_path(owner.manifest_path),
            problem=f"{pointer}: {text}",
            hint="correct this entry in the manifest, or remove it: the others are used",
            severity=Severity.WARNING,
        )
        for pointer, text in listing.problems
    ]
    return [
        Candidate(
            replace(one.manifest, after=(owner.id,)),
            one.folder or owner.folder,
            owner.manifest_path,
            owner.root,
            is_operator_defined=owner.is_operator_defined,
            files=owner.files,
            is_listed=True,
        )
        for one in listing.extensions
        if one.manifest.id not in listing.disabled
    ]
