"""`check_framing` passes correct framings, and fails broken ones with the reason."""

from __future__ import annotations

import tracemalloc

import pytest
from tests.framing import broken_framings as broken

import becket.testing
from becket.framing import FramingFactory
from becket.testing import check_framing


@pytest.mark.parametrize("factory", [broken.Good, broken.Skips])
def test_a_correct_framing_passes(factory: FramingFactory) -> None:
    check_framing(factory)


@pytest.mark.parametrize(
    ("factory", "complaint"),
    [
        (broken.HasAnotherPrefix, "prefix and body are not what encode returns"),
        (broken.RefusesObjects, "encode refuses a JSON object"),
        (broken.LosesWhiteSpace, "frame 0 came out as"),
        (broken.GivesViews, "a frame is bytes or a bytearray"),
        (broken.GivesOneFrameAChunk, "frames came out of"),
        (broken.ForgetsAnUnfinishedLength, "cut at byte 1"),
        (broken.WritesIntoWhatItGaveAway, "came out as"),
        (broken.CutsRunsInBlocks, "another frame behind"),
        (broken.DiesOfEmptyChunks, "feed raised EOFError"),
        (broken.ReportsAnErrorAtTheEnd, "end() between two frames gave an error"),
        (broken.EndsWithAnError, "good input ended with an error"),
        (broken.IsAlwaysPending, "pending is 1 between two frames"),
        (broken.IsNeverPending, "pending is 0 after 1 of the"),
        (broken.CountsNothing, "`frames` is 0 after 1 frames"),
        (broken.CountsTooEarly, "`frames` is 1 after 0 frames and 1 bytes"),
        (broken.IsNeverTruncated, "end() gave no BadFrame"),
        (broken.WritesAnything, "encode takes a body above limits.frame"),
        (broken.PrefixesAnything, "prefix takes a size above limits.frame"),
        (broken.ReadsAnything, "neither refused nor replaced"),
        (broken.ReadsAnythingAndThenComplains, "above limits.frame was delivered"),
        (broken.LosesWhatCameBefore, "the frame before an oversize one"),
        (broken.SkipsForEver, "more than limits.skipped_frames (1)"),
        (broken.ScansNothing, "after scan_oversize"),
        (broken.SkipsInSilence, "neither refused nor replaced"),
        (broken.SkipsTheNextOneToo, "the frame behind a skipped one"),
        (broken.AllocatesWhatWasAnnounced, "before it was refused"),
        (broken.RaisesErrors, "instead of recording a BadFrame"),
        (broken.RecordsAnotherType, "it must be a BadFrame"),
        (broken.RecordsAnotherTypeForSome, "it must be a BadFrame"),
        (broken.GoesOnAfterAnError, "frames were delivered after an error"),
        (broken.ChangesItsError, "`error` has changed"),
        (broken.ForgetsItsErrorAtTheEnd, "end() after an error gave None"),
        (broken.JudgesByTheChunk, "read differently in one chunk and byte by byte"),
        (broken.KeepsEveryChunk, "when they came two at a time"),
        (broken.ScansEverythingAgain, "look only at what is new"),
        (broken.CopiesEverythingAgain, "look only at what is new"),
        (broken.MovesTheRestForEachFrame, "do not move what is left"),
    ],
)
def test_the_failure_of_a_broken_framing_has_the_reason(factory: FramingFactory, complaint: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_framing(factory)
    assert complaint in str(caught.value)


def test_a_given_body_that_the_framing_refuses_is_a_failure() -> None:
    with pytest.raises(AssertionError) as caught:
        check_framing(broken.RefusesObjects, bodies=[b"[]", b"{}"])
    assert "encode refused it" in str(caught.value)


def test_at_least_one_given_body_must_be_small() -> None:
    with pytest.raises(ValueError):
        check_framing(broken.Good, bodies=[b"[" * 2_000])


def test_memory_is_measured_although_tracemalloc_is_already_running() -> None:
    tracemalloc.start()
    try:
        check_framing(broken.Good)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_the_test_kit_has_no_other_names() -> None:
    with pytest.raises(AttributeError):
        becket.testing.__getattr__("check_nothing")
