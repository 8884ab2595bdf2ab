"""The leak checks find each kind of leak, and no false ones."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import anyio
import pytest

from becket.testing import check_leaks, check_task_leaks, take_inventory


def test_a_block_that_leaves_nothing_behind_passes() -> None:
    with check_leaks():
        read, write = os.pipe()
        os.close(read)
        os.close(write)
        subprocess.run(["true"], check=True)
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()


def test_a_descriptor_that_stays_open_is_found() -> None:
    read, write = os.pipe()
    os.close(write)
    try:
        with pytest.raises(AssertionError, match=r"descriptor \d+: pipe:"), check_leaks(grace=0):
            write = os.dup(read)
    finally:
        os.close(read)
        os.close(write)


def test_a_reused_descriptor_number_is_found() -> None:
    with open(os.devnull, "rb") as file:
        before = take_inventory()
        read, write = os.pipe()
        os.dup2(read, file.fileno())
        os.close(read)
        os.close(write)

        assert take_inventory().new_since(before) != []


def test_a_thread_that_still_runs_is_found() -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="runs on")
    try:
        with pytest.raises(AssertionError, match=r"thread .*runs on"), check_leaks(grace=0):
            thread.start()
    finally:
        end.set()
        thread.join()


@pytest.mark.process
def test_a_process_that_still_runs_is_found() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        process_free = take_inventory()
        with subprocess.Popen(["sleep", "60"]) as sleeper:
            assert f"process {sleeper.pid}: sleep" in take_inventory().new_since(process_free)
            sleeper.kill()
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.process
def test_a_zombie_is_found() -> None:
    before = take_inventory()
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert take_inventory().new_since(before) == [f"process {process.pid}: true, a zombie"]
    process.wait()


@pytest.mark.process
def test_an_orphan_of_a_child_is_found() -> None:
    start = "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=-3).pid)"
    before = take_inventory()
    parent = subprocess.run([sys.executable, "-I", "-S", "-c", start], stdout=subprocess.PIPE, check=True)

    assert take_inventory().new_since(before) == [f"process {int(parent.stdout)}: sleep"]
    os.kill(int(parent.stdout), 9)
    os.waitpid(int(parent.stdout), 0)


@pytest.mark.loops
async def test_a_block_that_leaves_no_task_passes() -> None:
    async with check_task_leaks(grace=0), anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.sleep, 0)


async def test_a_task_that_still_runs_is_found() -> None:
    task = None
    with pytest.raises(AssertionError, match="runs on"):
        async with check_task_leaks(grace=0):
            task = asyncio.create_task(asyncio.sleep(60), name="runs on")
    assert task is not None
    task.cancel()


async def test_a_task_of_trio_that_still_runs_is_found() -> None:
    import trio

    async def main() -> None:
        with pytest.raises(AssertionError, match="runs on"):
            async with check_task_leaks(grace=0):
                trio.lowlevel.spawn_system_task(trio.sleep_forever, name="runs on")

    await anyio.to_thread.run_sync(trio.run, main)
