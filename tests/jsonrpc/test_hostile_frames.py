"""Frames made to take long are refused early. `hostile_frames` prints how long they take."""

from __future__ import annotations

import pytest
from tests.jsonrpc.hostile_frames import FRAMES, judge, main

from becket.limits import DEFAULT_LIMITS


@pytest.mark.parametrize("name", FRAMES)
def test_each_hostile_frame_has_its_verdict(name: str) -> None:
    build, verdict = FRAMES[name]
    frame = build()
    assert len(frame) <= DEFAULT_LIMITS.frame
    assert judge(frame) == verdict


def test_the_figures_can_be_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.jsonrpc.hostile_frames.FRAMES", {"small": (lambda: b"{}", "refused unread")})
    main()
    assert capsys.readouterr().out.startswith("small ")
