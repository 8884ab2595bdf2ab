"""Small files are read whole or refused at once; paths are escaped where they are shown."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from becket.conversion.files.reader import load_bytes
from becket.errors import BadFile


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)

    assert load_bytes(tmp_path / "a", 100_000) == b"x" * 100_000


def test_a_file_of_one_byte_more_than_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 11)

    with pytest.raises(BadFile) as caught:
        load_bytes(tmp_path / "a", 10)
    assert caught.value.path == str(tmp_path / "a")
    assert caught.value.problems == (("", "is larger than 10 bytes"),)


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(BadFile) as caught:
        load_bytes("/dev/zero")
    assert caught.value.problems == (("", "is no regular file"),)


def test_a_pipe_without_a_writer_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")

    with pytest.raises(BadFile) as caught:
        load_bytes(tmp_path / "a")
    assert caught.value.problems == (("", "is no regular file"),)


def test_a_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "a"))
        with pytest.raises(BadFile):
            load_bytes(tmp_path / "a")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile):
        load_bytes(tmp_path)


def test_the_cause_of_a_missing_file_is_preserved(tmp_path: Path) -> None:
    with pytest.raises(BadFile) as caught:
        load_bytes(tmp_path / "a")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(BadFile) as caught:
        load_bytes("a\0b")
    assert caught.value.path == "a\\x00b"


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").symlink_to("a")

    assert load_bytes(tmp_path / "b") == b"x"
    with pytest.raises(BadFile):
        load_bytes(tmp_path / "b", follow_links=False)
