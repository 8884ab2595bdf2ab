"""`check_framing`: verifies the contract of a framing.

It uses only the public interface: the output of `encode` is split, truncated, enlarged and corrupted in every way
that a pipe can, and `feed` must give the same result each time. It does not depend on the format of the frames.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from time import thread_time_ns

from becket._text import truncate_repr
from becket.errors import BadFrame, LocalProtocolError
from becket.framing.framing import Frame, Framing, FramingFactory, Outline, SkippedFrame
from becket.jsonrpc.oversize import MessageScanner
from becket.limits import KIB, MIB, Limits

__all__ = ["check_framing"]

LIMITS = Limits(frame=96 * KIB)
SMALL = 1 * KIB  # bodies up to this size are split at every position
ROOM = 64 * KIB  # for the framing's own state, and for the current chunk
# Rescanning everything received so far is some fifty times as slow as one step at the sizes used here; changing clock
# rates account for a factor of two.
AGAIN = 5  # tries before a slow run counts as a fault of the framing
GROWTH = 8
STEPS = 1 * KIB


def check_framing(factory: FramingFactory, *, bodies: Iterable[bytes] | None = None) -> None:
    """Checks that the framings of `factory` keep their contract; raises with the rule that is broken.

    `bodies` replaces the default ones where a framing carries less than any JSON text; a JSON object of any size within
    the limits must always be carried.

    Raises:
        AssertionError: with a sentence that says what is wrong.
        ValueError: none of `bodies` is small enough to be split at every position.
    """
    carried = _choose_bodies(factory, bodies)
    small = [body for body in carried if len(body) <= SMALL]
    if not small:
        raise ValueError(f"bodies: at least one of at most {SMALL} bytes is needed")
    _check_round_trips(factory, carried)
    _check_chunkings(factory, small)
    _check_many_frames(factory, small)
    _check_runs(factory)
    _check_progress(factory, small)
    _check_truncation(factory, small)
    _check_oversize_output(factory)
    _check_oversize_input(factory)
    _check_oversize_responses(factory)
    _check_errors_stay(factory)
    _check_corrupt_input(factory, small)
    _check_memory(factory)
    _check_work(factory)


# -- helpers


def _object_of(size: int) -> bytes:
    """Returns a JSON object of this many bytes."""
    return b'{"x":"' + b"x" * (size - 8) + b'"}'


def _default_bodies() -> list[bytes]:
    return [
        b"",
        b"1",
        b'{"jsonrpc":"2.0","method":"tick"}',
        '{"text":"\u00e9\u2028\u2029\U0001f4a1"}'.encode(),
        bytes(range(256)),
        _object_of(64 * KIB + 1),
        _object_of(LIMITS.frame),
    ]


def _choose_bodies(factory: FramingFactory, bodies: Iterable[bytes] | None) -> list[bytes]:
    """Returns the default bodies that the framing can carry, or exactly the given ones."""
    if bodies is not None:
        return list(bodies)
    framing = factory(LIMITS)
    carried: list[bytes] = []
    for body in _default_bodies():
        try:
            framing.encode(body)
        except LocalProtocolError:
            if body.startswith(b"{"):
                raise AssertionError(f"encode refuses a JSON object of {len(body)} bytes, within the limit") from None
        else:
            carried.append(body)
    return carried


def _encode_all(factory: FramingFactory, bodies: Iterable[bytes], limits: Limits = LIMITS) -> bytes:
    framing = factory(limits)
    return b"".join(framing.encode(body) for body in bodies)


def _feed(framing: Framing, chunks: Iterable[bytes]) -> list[Frame | SkippedFrame]:
    """Feeds chunk by chunk; a framing must never raise."""
    found: list[Frame | SkippedFrame] = []
    for chunk in chunks:
        try:
            found += framing.feed(chunk)
        except Exception as problem:
            raise AssertionError(
                f"feed raised {problem!r} instead of recording a BadFrame in `error`; fed {chunk[:64]!r}"
            ) from problem
    return found


def _bodies_of(found: Sequence[object]) -> list[bytes | SkippedFrame]:
    bodies: list[bytes | SkippedFrame] = []
    for frame in found:
        if isinstance(frame, SkippedFrame):
            bodies.append(frame)
        elif isinstance(frame, bytes | bytearray):
            bodies.append(bytes(frame))
        else:
            raise AssertionError(f"feed gave a {type(frame).__name__}: a frame is bytes or a bytearray")
    return bodies


def _expect(found: Sequence[Frame | SkippedFrame], bodies: Sequence[bytes], how: str) -> None:
    got = _bodies_of(found)
    if got == list(bodies):
        return
    for number, (one, other) in enumerate(zip(got, bodies, strict=False)):
        if one != other:
            raise AssertionError(
                f"{how}: frame {number} came out as {truncate_repr(one)}, it went in as {truncate_repr(other)}"
            )
    raise AssertionError(f"{how}: {len(got)} frames came out of {len(bodies)}")


def _expect_clean(framing: Framing, how: str) -> None:
    if framing.error is not None:
        raise AssertionError(f"{how}: good input ended with an error: {framing.error}")
    if framing.pending != 0:
        raise AssertionError(f"{how}: pending is {framing.pending} between two frames, not 0")
    problem = framing.end()
    if problem is not None:
        raise AssertionError(f"{how}: end() between two frames gave an error: {problem}")


def _expect_bad_frame(error: object) -> None:
    if error is not None and not isinstance(error, BadFrame):
        raise AssertionError(f"`error` is {error!r}: it must be a BadFrame")


def _split(data: bytes, random: Random) -> list[bytes]:
    """Returns the data in chunks of 0 to 40 bytes: a read may also be empty."""
    chunks: list[bytes] = []
    position = 0
    while position < len(data):
        size = random.randrange(41)
        chunks.append(data[position : position + size])
        position += size
    return chunks


# -- good input


def _check_round_trips(factory: FramingFactory, bodies: Sequence[bytes]) -> None:
    for body in bodies:
        how = f"a body of {len(body)} bytes"
        framing = factory(LIMITS)
        try:
            frame = framing.encode(body)
        except LocalProtocolError as problem:
            raise AssertionError(f"{how}: encode refused it: {problem}") from problem
        prefix = framing.prefix(len(body))
        if prefix is not None and prefix + body != frame:
            raise AssertionError(f"{how}: prefix and body are not what encode returns: prefix must return None")
        _expect(_feed(framing, [frame]), [body], how)
        _expect_clean(framing, how)


def _check_chunkings(factory: FramingFactory, bodies: Sequence[bytes]) -> None:
    data = _encode_all(factory, bodies)
    random = Random(1)
    chunkings: list[tuple[str, list[bytes]]] = [
        *((f"cut at byte {cut}", [data[:cut], data[cut:]]) for cut in range(len(data) + 1)),
        ("one byte at a time", [data[at : at + 1] for at in range(len(data))]),
        ("two bytes at a time", [data[at : at + 2] for at in range(0, len(data), 2)]),
        *((f"random chunks, number {number}", _split(data, random)) for number in range(50)),
    ]
    for how, chunks in chunkings:
        framing = factory(LIMITS)
        _expect(_feed(framing, chunks), bodies, how)
        _expect_clean(framing, how)


def _check_many_frames(factory: FramingFactory, bodies: Sequence[bytes]) -> None:
    many = [bodies[number % len(bodies)] for number in range(1000)]
    data = _encode_all(factory, many)
    framing = factory(LIMITS)
    _expect(_feed(framing, [data]), many, "1,000 frames in one chunk")
    _expect_clean(framing, "1,000 frames in one chunk")
    framing = factory(LIMITS)
    # Compared only when all are there: a bytearray that was returned must not change any more.
    _expect(_feed(framing, _split(data, Random(2))), many, "1,000 frames in random chunks")


def _check_runs(factory: FramingFactory) -> None:
    """Checks thousands of frames of one size, which invite fast paths, at the boundaries of memory blocks."""
    other = _object_of(9)
    for whole in (2**power for power in range(5, 13)):
        overhead = len(_encode_all(factory, [_object_of(whole)])) - whole
        equal = _object_of(max(whole - overhead, 8))
        equal = _object_of(max(len(equal) + whole - len(_encode_all(factory, [equal])), 8))
        for run in (4 * whole, 16 * KIB, 64 * KIB):
            bodies = [*[equal] * (run // whole), other, *[equal] * 8, other, equal]
            framing = factory(LIMITS)
            _feed(framing, [_encode_all(factory, [equal])])
            how = f"another frame behind {run // whole} that take {whole} bytes each"
            _expect(_feed(framing, [_encode_all(factory, bodies)]), bodies, how)
            _expect_clean(framing, how)


def _check_progress(factory: FramingFactory, bodies: Sequence[bytes]) -> None:
    framing = factory(LIMITS)
    encoder = factory(LIMITS)
    for number, body in enumerate(bodies):
        frame = encoder.encode(body)
        for position in range(len(frame)):
            if position and framing.pending <= 0:
                raise AssertionError(f"pending is 0 after {position} of the {len(frame)} bytes of a frame")
            if framing.frames != number:
                raise AssertionError(f"`frames` is {framing.frames} after {number} frames and {position} bytes")
            _feed(framing, [frame[position : position + 1]])
        if framing.frames != number + 1:
            raise AssertionError(f"`frames` is {framing.frames} after {number + 1} frames")


def _check_truncation(factory: FramingFactory, bodies: Sequence[bytes]) -> None:
    encoder = factory(LIMITS)
    data = b""
    ends = [0]
    for body in bodies:
        data += encoder.encode(body)
        ends.append(len(data))
    for cut in range(len(data) + 1):
        framing = factory(LIMITS)
        found = _feed(framing, [data[:cut]])
        complete = sum(1 for end in ends[1:] if end <= cut)
        _expect(found, bodies[:complete], f"input that ends after byte {cut}")
        if cut in ends:
            _expect_clean(framing, f"input that ends after byte {cut}")
        elif not isinstance(framing.end(), BadFrame):
            raise AssertionError(f"end() gave no BadFrame for input that ends inside a frame, after byte {cut}")


# -- bad input


def _check_oversize_output(factory: FramingFactory) -> None:
    try:
        factory(LIMITS).encode(_object_of(LIMITS.frame + 1))
        raise AssertionError("encode takes a body above limits.frame: it must raise LocalProtocolError")
    except LocalProtocolError:
        pass
    try:
        prefix = factory(LIMITS).prefix(LIMITS.frame + 1)
    except LocalProtocolError:
        return
    if prefix is not None:
        raise AssertionError("prefix takes a size above limits.frame: it must raise LocalProtocolError")


def _oversize_frame(factory: FramingFactory, size: int) -> bytes:
    """Returns a frame that is too large for LIMITS, as a peer with larger limits would send it."""
    return _encode_all(factory, [_object_of(size)], LIMITS.but(frame=size))


def _check_oversize_input(factory: FramingFactory) -> None:
    good = b'{"good":1}'
    wire_good = _encode_all(factory, [good])
    framing = factory(LIMITS)
    found = _bodies_of(_feed(framing, [wire_good + _oversize_frame(factory, LIMITS.frame + 1)]))
    if not found or found[0] != good:
        raise AssertionError("the frame before an oversize one, in the same chunk, was not delivered")
    if framing.error is None:
        if len(found) != 2 or not isinstance(found[1], SkippedFrame):
            raise AssertionError("a frame above limits.frame was neither refused nor replaced by one Skipped")
        _expect(_feed(framing, [wire_good]), [good], "the frame behind a skipped one")
    elif len(found) > 1:
        raise AssertionError("a frame above limits.frame was delivered")
    _check_oversize_memory(factory)


def _check_oversize_responses(factory: FramingFactory) -> None:
    """Where a framing can skip oversize responses, it skips any number of them."""
    good = b'{"good":1}'
    scanning = factory(LIMITS)
    scan = getattr(scanning, "scan_oversize", None)
    if scan is None:
        return
    scan(partial(MessageScanner, LIMITS))
    large = b'{"result":"%b","id":1}' % (b"x" * LIMITS.frame)
    data = _encode_all(factory, [large] * (LIMITS.skipped_frames + 1) + [good], LIMITS.but(frame=len(large)))
    frames = _feed(scanning, [data[at : at + 16 * KIB] for at in range(0, len(data), 16 * KIB)])
    found = [frame.outline if isinstance(frame, SkippedFrame) else bytes(frame) for frame in frames]
    if found != [Outline(b"1", is_response=True)] * (LIMITS.skipped_frames + 1) + [good]:
        raise AssertionError(
            "after scan_oversize a response above limits.frame was not replaced by a Skipped with its outline"
        )


def _check_oversize_memory(factory: FramingFactory) -> None:
    data = _oversize_frame(factory, 16 * LIMITS.frame)
    chunks = [data[at : at + 16 * KIB] for at in range(0, len(data), 16 * KIB)]
    framing = factory(LIMITS)
    peak = _measure_memory(lambda: _feed(framing, chunks))
    if peak > LIMITS.frame + ROOM:
        raise AssertionError(
            f"a frame of {len(data)} bytes took {peak} bytes of memory before it was refused; the limit is "
            f"{LIMITS.frame}: look at the announced size before taking memory for it"
        )


def _break(factory: FramingFactory) -> Framing:
    """Returns a framing that has failed on invalid input."""
    framing = factory(LIMITS)
    overgrown = _oversize_frame(factory, LIMITS.frame + 1)
    for _ in range(LIMITS.skipped_frames + 1):
        _feed(framing, [overgrown])
    if framing.error is None:
        raise AssertionError(f"more than limits.skipped_frames ({LIMITS.skipped_frames}) oversize frames were skipped")
    return framing


def _check_errors_stay(factory: FramingFactory) -> None:
    framing = _break(factory)
    error, frames = framing.error, framing.frames
    _expect_bad_frame(error)
    if _feed(framing, [_encode_all(factory, [b'{"good":1}'])]) or framing.frames != frames:
        raise AssertionError("frames were delivered after an error: it must be the end of reading")
    if framing.error is not error:
        raise AssertionError("`error` has changed: the first one must stay")
    if framing.end() is None:
        raise AssertionError("end() after an error gave None")


def _check_corrupt_input(factory: FramingFactory, bodies: Sequence[bytes]) -> None:
    random = Random(3)
    good = _encode_all(factory, bodies)
    for _ in range(300):
        data = _corrupt(good, random)
        whole = factory(LIMITS)
        cut = factory(LIMITS)
        together = _bodies_of(_feed(whole, [data]))
        apart = _bodies_of(_feed(cut, [data[at : at + 1] for at in range(len(data))]))
        _expect_bad_frame(whole.error)
        if type(whole.error) is not type(cut.error) or _comparable(together) != _comparable(apart):
            raise AssertionError(
                f"spoilt input is read differently in one chunk and byte by byte: {truncate_repr(data)} gave "
                f"{truncate_repr(together)}, {whole.error!r} and {truncate_repr(apart)}, {cut.error!r}"
            )


def _corrupt(good: bytes, random: Random) -> bytes:
    data = bytearray(good[random.randrange(len(good)) :] + good)[: random.randrange(1, 200)]
    for _ in range(random.randrange(1, 5)):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


def _comparable(found: Sequence[bytes | SkippedFrame]) -> list[bytes | None]:
    return [None if isinstance(frame, SkippedFrame) else frame for frame in found]


# -- memory and time


def _measure_memory(run: Callable[[], object]) -> int:
    """Returns the peak increase of memory, in bytes, while `run` was running."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        run()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not was_tracing:
            tracemalloc.stop()


def _check_memory(factory: FramingFactory) -> None:
    # Two bytes, since Python caches single-byte objects, which would hide the cost of a list of them.
    data = _encode_all(factory, [_object_of(LIMITS.frame)])[:-2]
    framing = factory(LIMITS)
    peak = _measure_memory(lambda: _feed(framing, (data[at : at + 2] for at in range(0, len(data), 2))))
    if peak > 4 * len(data) + ROOM:
        raise AssertionError(f"{len(data)} bytes of a frame took {peak} bytes of memory when they came two at a time")


def _check_work(factory: FramingFactory) -> None:
    """Checks that a byte costs the same, however much was received before it.

    Scans inside `bytes.find` cannot be counted from outside, so this compares the processor time of the fastest of
    many short runs: other load can only slow a run down."""
    limits = LIMITS.but(frame=4 * MIB)
    frame = _encode_all(factory, [_object_of(limits.frame)], limits)
    framing = factory(limits)
    _feed(framing, [frame[:STEPS]])
    early = _measure_steps(framing, frame[STEPS : 2 * STEPS])
    _feed(framing, [frame[2 * STEPS : -2 * STEPS]])
    late = _measure_steps(framing, frame[-2 * STEPS : -STEPS])
    if late > GROWTH * early:
        raise AssertionError(
            f"one more byte of a frame costs {late / early:.0f} times as much after {len(frame)} bytes as after a few: "
            "look only at what is new"
        )
    few = _measure_frames(factory, 100, runs=10)
    many = _measure_frames(factory, 10_000, runs=2)
    for _ in range(AGAIN):
        if many <= GROWTH * few:
            break
        many = min(many, _measure_frames(factory, 10_000, runs=1))  # other load evicts the caches
    if many > GROWTH * few:
        raise AssertionError(
            f"one frame costs {many / few:.0f} times as much among 10,000 in one chunk as among 100: "
            "do not move what is left for each of them"
        )


def _measure_steps(framing: Framing, data: bytes) -> float:
    """Feeds the data one byte at a time; returns the time of the fastest 64 steps."""
    quickest = float("inf")
    for start in range(0, len(data), 64):
        steps = [data[at : at + 1] for at in range(start, start + 64)]
        began = thread_time_ns()
        for step in steps:
            framing.feed(step)
        quickest = min(quickest, thread_time_ns() - began)
    return quickest


def _measure_frames(factory: FramingFactory, count: int, *, runs: int) -> float:
    """Returns the time per frame among `count` in a chunk, in the fastest of several runs."""
    chunk = _encode_all(factory, [_object_of(128)] * count)
    quickest = float("inf")
    for _ in range(runs):
        framing = factory(LIMITS)
        began = thread_time_ns()
        framing.feed(chunk)
        quickest = min(quickest, (thread_time_ns() - began) / count)
    return quickest
