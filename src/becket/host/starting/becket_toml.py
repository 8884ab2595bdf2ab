"""Reads `becket.toml`, and reports all of its problems at once."""

from __future__ import annotations

import os
from typing import Any, Final

import msgspec

from becket._text import quote_path
from becket.conversion.files.reader import load_bytes
from becket.conversion.files.toml import parse_toml
from becket.conversion.problems import find_problems
from becket.errors import BadFile, ManifestError, Problem
from becket.host.starting.manifest import FORMAT, Manifest
from becket.host.starting.manifest_problems import explain_patterns, find_misspellings, find_rule_problems, hint_for
from becket.host.starting.manifest_reader import ManifestReader

__all__ = ["FILE_NAME", "BecketToml", "load_manifest", "parse_manifest", "parse_table"]

FILE_NAME: Final = "becket.toml"


class BecketToml(ManifestReader):
    """The reader of `becket.toml`."""

    file_names = (FILE_NAME,)

    def read(self, data: bytes, path: str) -> Manifest:
        """Returns the content of the file.

        Raises:
            ManifestError: it cannot be used; all problems, each with its JSON pointer.
        """
        return parse_manifest(parse_table(data, path), path)

    def hint_for(self, problem: Problem) -> str:
        """Returns what to do about a problem of the file."""
        return hint_for(problem)


def parse_table(data: bytes, path: str) -> dict[str, Any]:
    """Returns the unchecked content of a manifest in TOML.

    Raises:
        ManifestError: it is not TOML.
    """
    try:
        return parse_toml(data, path)
    except BadFile as error:
        raise ManifestError(error.path, error.problems) from error


def load_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Returns the manifest in this `becket.toml`.

    Raises:
        ManifestError: it cannot be read or used; all problems, each with its JSON pointer.
    """
    try:
        data = load_bytes(path)
    except BadFile as error:
        raise ManifestError(error.path, error.problems) from error
    return BecketToml().read(data, os.fspath(path))


def parse_manifest(table: dict[str, Any], path: str) -> Manifest:
    """Returns the manifest that a table holds; `path` is for the message.

    Raises:
        ManifestError: it breaks rules; all problems, each with its JSON pointer.
    """
    try:
        manifest = msgspec.convert(table, Manifest)
    except msgspec.ValidationError as error:
        problems = find_format_problems(table)
        problems = problems or [
            *explain_patterns(find_problems(table, Manifest)),
            *find_rule_problems(table),
            *find_misspellings(table),
        ]
        raise ManifestError(quote_path(path), problems) from error
    problems = [*find_rule_problems(table)]
    if problems:
        raise ManifestError(quote_path(path), [*problems, *find_misspellings(table)])
    return manifest


def find_format_problems(table: dict[str, Any]) -> list[Problem]:
    """Returns that the version of the format is another one: then nothing else can be checked."""
    version = table.get("manifest", FORMAT)
    if not isinstance(version, int) or isinstance(version, bool) or version == FORMAT:
        return []
    return [("/manifest", f"is version {version} of the format, and this host reads version {FORMAT}")]
