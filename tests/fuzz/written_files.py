"""Hand-written files as targets: TOML, manifests, grants.

Whatever the bytes are, they are read as tomllib reads them or refused with a problem; and grants say after a change
what they should, and nothing else.
"""

from __future__ import annotations

import tomllib
from collections.abc import Hashable
from random import Random

import msgspec
from tests.fuzz.target import Target

from becket.conversion.files.toml import parse_toml
from becket.errors import BadFile, ManifestError
from becket.host.starting.becket_toml import BecketToml
from becket.host.starting.grants_file import GrantEntry, parse_grants, rewrite_grants
from becket.host.starting.manifest_problems import hint_for
from becket.permissions.names import PERMISSIONS

__all__ = ["TARGETS"]

TEXTS = [
    b'a = 1\n[b]\nc = "d.e" # f\n',
    b"a.b.c = [1, 2.5, {d = true}]\n[[e.f]]\ng = 1979-05-27\n",
    b'a = """x\n"y" """\nb = \'\'\'z\'\'\'\n"c.d" = \'e\'\n',
    b"a = inf\nb = 0xffffffffffffffffff\n",
]
MANIFESTS = [
    b'id = "notes"\nversion = "1.0.0"\ncommand = ["x"]\n',
    b'id = "a"\nversion = "1.0.0"\ncommand = ["x", "y"]\npermissions = ["memory.read"]\n'
    b'[[hooks]]\nhook = "before_tool_call"\ntool = "bash"\n[config.k]\ntype = "integer"\ndefault = 1\n',
    b'manifest = 1\nid = "a"\nversion = "1.0.0"\ncommand = ["x"]\n'
    b'[requires]\nbins = ["rg"]\n[limits]\nframe = 1\n[x]\n',
]
GRANTS = [
    b'[notes]\nallow = ["memory.read"]\n',
    b'# a\n[notes] # b\nallow = [\n"memory.read", # c\n]\ndeny = ["audio.input"]  # d\n\n["a.b"]\n',
    b"notes = { allow = [] }\n",
]
ENTRIES = [GrantEntry(), GrantEntry(("memory.write",)), GrantEntry((), ("audio.input",), "0" * 64)]
TOKENS = [
    *(
        b"=",
        b".",
        b",",
        b"[",
        b"]",
        b"[[",
        b"]]",
        b"{",
        b"}",
        b'"',
        b"'",
        b'"""',
        b"'''",
        b"\n",
        b"\r\n",
        b"#",
        b"\\",
        b" ",
    ),
    *(b"a", b"1", b"-", b"_", b"true", b"nan", b"1e9", b"\xff", b"\x00", b"\xc3\xa9", b"\\u0000", b"\xef\xbb\xbf"),
    *(b"[notes]\n", b"allow = ", b"deny = ", b'"memory.read"', b"id = ", b"command = ", b"[x]\n", b"[[hooks]]\n"),
]


def run_toml(data: bytes, random: Random) -> Hashable:
    try:
        table = parse_toml(data, "x")
    except BadFile as error:
        return error.problems[0][1][:24]
    assert table == tomllib.loads(data.decode())
    return len(table)


def run_manifest(data: bytes, random: Random) -> Hashable:
    try:
        manifest = BecketToml().read(data, "x")
    except ManifestError as error:
        hints = [hint_for(problem) for problem in error.problems]
        return tuple(pointer for pointer, _ in error.problems[:3]), any(hints)
    msgspec.json.encode(manifest)
    return manifest.__struct_fields__ if manifest.hooks else len(manifest.permissions)


def run_grants(data: bytes, random: Random) -> Hashable:
    try:
        entries = parse_grants(data, "x", PERMISSIONS)
    except BadFile as error:
        return error.problems[0][1][:24]
    extension = random.choice([*entries, "new", "a.b"])
    entry = random.choice(
        [None, GrantEntry(), GrantEntry(("memory.write",)), GrantEntry((), ("audio.input",), "0" * 64)]
    )
    after = rewrite_grants(data.decode(), extension, entry)
    expected = {id: one for id, one in entries.items() if id != extension}
    if entry is not None:
        expected[extension] = entry
    assert parse_grants(after.encode(), "x", PERMISSIONS) == expected
    return len(entries), extension in entries, entry is None


TARGETS = [
    Target("toml", TEXTS, TOKENS, run_toml),
    Target("manifest", MANIFESTS, TOKENS, run_manifest),
    Target("grants", GRANTS, TOKENS, run_grants),
]
