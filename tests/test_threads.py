"""Threads that the end of the program does not wait for."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

LATE = """
import sys
from _thread import start_new_thread
from time import sleep

from becket import _threads

def start_late(function, arguments):
    def begin():
        sleep(0.5)  # the machine is busy
        sys.stdout.write("begun")
        sys.stdout.flush()
        function(*arguments)
    start_new_thread(begin, ())

_threads.start_new_thread = start_late
_threads.start_daemon_thread(int)
"""
ENDLESS = """
import threading
from becket._threads import start_daemon_thread

start_daemon_thread(threading.Event().wait)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)


def test_the_end_of_a_program_waits_until_a_thread_has_begun() -> None:
    assert run(LATE).stdout == "begun"


def test_the_end_of_a_program_does_not_wait_for_the_end_of_a_thread() -> None:
    assert run(ENDLESS).stderr == ""


def test_the_end_of_a_program_waits_for_a_bounded_time() -> None:
    never = LATE.replace("sleep(0.5)", "sleep(600)").replace("start_late\n", "start_late\n_threads.MAX_START = 0.1\n")

    assert run(never).stdout == ""
