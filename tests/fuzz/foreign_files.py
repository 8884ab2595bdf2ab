"""The files of other systems as targets: manifests and lists, in TOML, JSON and YAML.

Whatever the bytes are, a reader returns extensions whose ids can name a folder, or problems; it raises nothing
else, and has a hint, or none, for each problem.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from random import Random

import msgspec
from tests.fuzz.target import Target

from becket.errors import BadFile, Problem
from becket.host.starting.manifest import is_id
from becket.host.starting.manifest_formats import MANIFEST_READERS
from becket.host.starting.manifest_reader import FoundExtension, ManifestReader, ScopedFiles

__all__ = ["TARGETS"]

EXAMPLES = Path(__file__).parents[2] / "examples" / "dialects"
LISTS = {
    "nexo": [
        b"extensions:\n  enabled: true\n  search_paths: [./extensions]\n  ignore_dirs: [target]\n  disabled: [a]\n"
        b"  allowlist: [b]\n  max_depth: 4\n  follow_links: false\n  watch: {enabled: false, debounce_ms: 500}\n",
    ],
    "roder": [
        b'[[process_extensions]]\nid = "a"\nmanifest = "a/roder-extension.toml"\ncommand = "x"\nargs = ["y"]\n'
        b'cwd = "."\nenv = { K = "v" }\nstartup_timeout_ms = 1\nevent_filter = { kinds = ["t"] }\nenabled = false\n',
    ],
    "morphir": [
        b'[[extensions]]\nname = "v"\nsource = { type = "process", command = "x" }\n',
        b'[[extensions]]\nname = "v"\nenabled = false\nprotocol = "stdio"\nconfig = { a = 1 }\n'
        b'restart = { strategy = "immediate", max_retries = 3 }\npermissions = { network = false }\n'
        b'[extensions.source]\ntype = "process"\ncommand = "x"\nargs = ["y"]\nenv = { K = "v" }\n',
        b'[[extensions]]\nname = "v"\nsource = { type = "http", url = "x" }\n[[extensions]]\nname = 1\n',
    ],
    "roder-package": [
        b'[package]\nid = "a"\nname = "A"\n[resources]\nextensions = ["a/*/roder-extension.toml", "b.toml"]\n',
    ],
    "mcp": [b'{"mcpServers": {"clock": {"command": "python3", "args": ["c.py"], "env": {"K": "v"}}}}'],
}
TOKENS = [
    *(b"=", b".", b",", b"[", b"]", b"[[", b"]]", b"{", b"}", b'"', b"'", b'"""', b"\n", b"#", b"\\", b" ", b":"),
    *(b"- ", b"&a", b"*a", b"!!str ", b"~", b"null", b"true", b"false", b"-1", b"1e9", b"nan", b"\xff", b"\x00"),
    *(b"id", b"name", b"version", b"command", b"args", b"env", b"type", b"tools", b"provides", b"plugin", b"hooks"),
    *(b'"extension"', b'"permissions"', b'"../x"', b"/etc/passwd", b"..", b"\xc3\xa9", b"99999999999999999999"),
]


def find_manifests(reader: ManifestReader) -> list[bytes]:
    """Returns the manifests of this kind that the examples have."""
    return [path.read_bytes() for name in reader.file_names for path in sorted(EXAMPLES.glob(f"*/*/{name}"))]


def run_manifest(reader: ManifestReader) -> Callable[[bytes, Random], Hashable]:
    def run(data: bytes, random: Random) -> Hashable:
        try:
            found = reader.read(data, f"/somewhere/folder/{reader.file_names[0]}")
        except BadFile as error:
            return look_at_problems(reader, error.problems)
        if found is None:
            return None
        return look_at(found if isinstance(found, FoundExtension) else FoundExtension(manifest=found))

    return run


def run_list(reader: ManifestReader, name: str) -> Callable[[bytes, Random], Hashable]:
    def run(data: bytes, random: Random) -> Hashable:
        path = f"/somewhere/folder/{name}"
        try:
            listing = reader.read_list(data, path, ScopedFiles(path.rpartition("/")[0], "/somewhere"))
        except BadFile as error:
            return look_at_problems(reader, error.problems)
        problems = look_at_problems(reader, listing.problems)
        return len(listing.search_folders), len(listing.disabled), problems, *map(look_at, listing.extensions[:3])

    return run


def look_at(found: FoundExtension) -> Hashable:
    manifest = found.manifest
    msgspec.json.encode(manifest)
    assert manifest.command
    assert all(isinstance(word, str) for word in manifest.command)
    return is_id(manifest.id), len(manifest.permissions), len(manifest.command), found.path is None


def look_at_problems(reader: ManifestReader, problems: Sequence[Problem]) -> Hashable:
    hints = [reader.hint_for(problem) for problem in problems]
    assert all(isinstance(hint, str) for hint in hints)
    return tuple(pointer for pointer, _ in problems[:3]), any(hints)


TARGETS = [
    *(
        Target(f"{reader.dialect}-manifest", find_manifests(reader), TOKENS, run_manifest(reader))
        for reader in MANIFEST_READERS[1:]
        if reader.file_names
    ),
    *(
        Target(f"{kind}-list", LISTS[kind], TOKENS, run_list(reader, name))
        for reader in MANIFEST_READERS[1:]
        for kind, name in zip((reader.dialect, f"{reader.dialect}-package"), reader.list_names, strict=False)
    ),
]
