"""A short run of the fuzzer, and its report of a failure. The long run is `make fuzz`."""

from __future__ import annotations

from random import Random

import pytest
from tests.fuzz.__main__ import main
from tests.fuzz.mutation import Failure, fuzz, mutate
from tests.fuzz.registry import TARGETS
from tests.fuzz.target import Target


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_target_survives_a_thousand_inputs(target: Target) -> None:
    report = fuzz(target, 1_000, seed=20)
    assert report.inputs == 1_000
    assert report.outcomes > 5


def test_the_same_seed_gives_the_same_inputs() -> None:
    def take(seed: int) -> list[bytes]:
        random = Random(seed)
        return [mutate([b"Content-Length: 2\r\n\r\n{}", b"[]\n"], [b"\r\n"], random) for _ in range(200)]

    assert take(1) == take(1)
    assert take(1) != take(2)


def dies_of_three_zeros(data: bytes, random: Random) -> int:
    if b"\0\0\0" in data:
        raise ZeroDivisionError
    return len(data)


FRAGILE = Target("fragile", [b"\0", b"abc"], [b"\0"], dies_of_three_zeros)


def test_a_failure_carries_the_input_and_its_cause() -> None:
    with pytest.raises(Failure) as caught:
        fuzz(FRAGILE, 10_000, seed=1)
    assert b"\0\0\0" in caught.value.data
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_the_command_prints_rates_and_totals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--inputs", "100", "--target", "json-lines", "--target", "sniffing"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["json-lines", "sniffing", "all"]
    assert "100 inputs" in lines[-1]


def test_the_command_prints_the_offending_input_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--inputs", "10000", "--seed", "3"], targets=[FRAGILE]) == 1
    output = capsys.readouterr().err
    assert "ZeroDivisionError" in output
    assert "seed 3" in output
    assert "\\x00\\x00\\x00" in output
