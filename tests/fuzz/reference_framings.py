"""Reference framings, written to be obviously correct: each takes the whole input and returns its frames.

They are slow, they keep no state, and they treat an error like incomplete input: reading stops there either way.
"""

from __future__ import annotations

import re

from becket.limits import Limits

__all__ = ["read_json_lines", "read_length_prefixed", "read_loose", "read_strict"]

HEADER_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\x00-\x08\x0a-\x1f\x7f]*)")
CHARSET = re.compile(rb";[ \t]*charset[ \t]*=[ \t]*(.*?)[ \t]*(?:;|$)", re.IGNORECASE)
SKIPPED = "skipped"


def read_strict(data: bytes, limits: Limits) -> list[bytes | str]:
    frames: list[bytes | str] = []
    while True:
        block, blank, rest = data.partition(b"\r\n\r\n")
        length = _strict_length(block.split(b"\r\n"), limits)
        if not blank or len(block + blank) > limits.header or length is None or length > len(rest):
            return frames
        frames.append(rest[:length])
        data = rest[length:]


def _strict_length(lines: list[bytes], limits: Limits) -> int | None:
    matches = [HEADER_LINE.fullmatch(line) for line in lines]
    headers = [(match[1].lower(), match[2].strip(b" \t")) for match in matches if match is not None]
    lengths = [value for name, value in headers if name == b"content-length"]
    types = [value for name, value in headers if name == b"content-type"]
    if len(headers) < len(lines) or len(lines) > limits.header_lines or len(lengths) != 1:
        return None
    if any(
        charset.lower() not in (b"utf-8", b"utf8", b'"utf-8"', b'"utf8"')
        for value in types
        for charset in CHARSET.findall(value)
    ):
        return None
    if re.fullmatch(rb"[0-9]{1,10}", lengths[0]) is None or int(lengths[0]) > limits.frame:
        return None
    return int(lengths[0])


def read_loose(data: bytes, limits: Limits) -> list[bytes | str]:
    frames: list[bytes | str] = []
    length: int | None = None
    while True:
        raw, newline, data = data.partition(b"\n")
        if not newline or len(raw + newline) > 1024:
            return frames
        try:
            line = raw.decode().strip()
        except UnicodeDecodeError:
            return frames
        if not line:
            if length is None or length > min(limits.frame, len(data)):
                return frames
            frames.append(data[:length])
            data = data[length:]
            length = None
        elif ":" in line:
            name, value = (part.strip() for part in line.split(":", 1))
            if name.lower() == "content-length":
                if re.fullmatch(r"\+?[0-9]+", value) is None or int(value) > 2**64 - 1:
                    return frames
                length = int(value)


def read_json_lines(data: bytes, limits: Limits) -> list[bytes | str]:
    frames: list[bytes | str] = []
    for raw in data.split(b"\n")[:-1]:
        line = raw.removesuffix(b"\r")
        if len(line) > limits.frame:
            if frames.count(SKIPPED) == limits.skipped_frames:
                return frames
            frames.append(SKIPPED)
        elif line.strip():
            frames.append(line)
    return frames


def read_length_prefixed(data: bytes, limits: Limits) -> list[bytes | str]:
    frames: list[bytes | str] = []
    while len(data) >= 4:
        length = int.from_bytes(data[:4])
        if length > limits.frame or len(data) < 4 + length:
            break
        frames.append(data[4 : 4 + length])
        data = data[4 + length :]
    return frames
