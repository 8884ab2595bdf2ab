"""Removes secrets from commands before they are recorded or shown: option values, connection strings, headers, tokens.

Pure, and by form: anything but an option with the name of a secret, or a known form, stays. The command that is
started, and the one that a person consents to, are never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from becket.host.starting.environment import is_secret_name

__all__ = ["HIDDEN", "redact_command", "redact_text"]

HIDDEN: Final = "***"
# The arguments come from untrusted manifests: names are bounded, so that matching takes linear time.
OPTION: Final = re.compile(r"-{1,2}(?P<name>[A-Za-z0-9][\w.-]*)")
MEMBER: Final = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]{0,63})\s{0,8}=\s{0,8}")
# A value continues over spaces, unless the next member begins there: `Password=two words;`, `password=x dbname=notes`.
VALUE: Final = re.compile(r"""'[^']*'?|"[^"]*"?|(?:[^;&\s]|\s(?!\s{0,8}[\w.-]{1,64}\s{0,8}=|--?[A-Za-z]))*""")
JSON_MEMBER: Final = re.compile(r"""(?P<begin>"(?P<name>[^"\\]{1,64})"\s{0,8}:\s{0,8}")(?:[^"\\]|\\.)*""", re.DOTALL)
HEADER: Final = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*):\s*(?=[^/\s])")
USER_INFO: Final = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]{0,31}://)[^/?#\s]*@")
SCHEME: Final = re.compile(r"(?P<word>\b(?:bearer|basic|digest|token)\s+)\S+", re.IGNORECASE)
TOKEN: Final = re.compile(
    r"\b(?:sk-|sk_|pk_|rk_|gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|AKIA|ASIA|AIza|ya29\.|hf_|npm_|eyJ)[\w.-]{8,}"
)


def redact_command(arguments: Iterable[str]) -> tuple[str, ...]:
    """Returns a command with `***` in the place of each secret."""
    redacted: list[str] = []
    is_value = False  # the option before has the name of a secret, and its value follows
    for word in arguments:
        redacted.append(HIDDEN if is_value and not OPTION.match(word) else redact_option(word))
        option = OPTION.fullmatch(word)
        is_value = option is not None and is_secret(option["name"])
    return tuple(redacted)


def redact_option(word: str) -> str:
    name, sign, value = word.partition("=")
    option = OPTION.fullmatch(name)
    if option is None or not sign:
        return redact_text(word)
    return f"{name}={HIDDEN if is_secret(option['name']) else redact_text(value)}"


def redact_text(text: str) -> str:
    """Returns one argument of a command, or a connection string, with `***` in the place of secrets."""
    header = HEADER.match(text)
    if header is not None and is_secret(header["name"]):
        return f"{header[0]}{HIDDEN}"
    text = USER_INFO.sub(rf"\g<scheme>{HIDDEN}@", text)
    text = SCHEME.sub(rf"\g<word>{HIDDEN}", text)
    text = JSON_MEMBER.sub(hide_json_member, text)
    return TOKEN.sub(HIDDEN, hide_members(text))


def hide_json_member(member: re.Match[str]) -> str:
    return f"{member['begin']}{HIDDEN}" if is_secret(member["name"]) else member[0]


def hide_members(text: str) -> str:
    """Hides the values of `name=value`, alone, in a query or in a connection string."""
    parts: list[str] = []
    position = 0
    while (member := MEMBER.search(text, position)) is not None:
        parts.append(text[position : member.end()])
        position = member.end()  # the value of a harmless name may have members itself: a URL with a query
        if is_secret(member["name"]):
            value = VALUE.match(text, position)
            assert value is not None  # it may be empty
            parts.append(HIDDEN)
            position = value.end()
    return "".join([*parts, text[position:]])


def is_secret(name: str) -> bool:
    """Returns whether an option, a member or a header of this name holds a secret, as for a variable."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").replace(".", "_").upper()
    return plain.endswith(ENDINGS) or is_secret_name(f"OPTION_{plain}")


ENDINGS: Final = ("AUTHORIZATION", "COOKIE", "PASS", "PASSPHRASE", "SIGNATURE", "ACCOUNTKEY")
