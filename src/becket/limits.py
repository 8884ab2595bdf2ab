"""Every limit of becket in one frozen class, with its default and the reason for it.

Limits are data. Whoever enforces one takes it from a `Limits` value handed to its constructor; nothing
here enforces anything, and no module-level setting exists.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["DEFAULT_LIMITS", "Limits"]

KIB = 1024
MIB = 1024 * KIB
SKIPPED_FRAMES = 4  # as long as this many may one response be that is skipped


class Limits(Struct, frozen=True, kw_only=True):
    """What one connection will hold, accept and wait for, and what is stored for the extension behind it.

    `limits.but(frame=...)` gives a changed copy."""

    # -- bytes to frames
    frame: int = 4 * MIB  # one message body; larger payloads travel as a path
    header: int = 4 * KIB  # the header block of one frame
    header_lines: int = 16
    stray: int = 64 * KIB  # text outside frames that a lenient reader drops before it gives up
    partial_frame: float = 10.0  # seconds from a frame's first byte, not renewed by progress
    partial_frame_rate: int = 64 * KIB  # bytes a second that a large body must keep beyond that
    skipped_frames: int = 1  # oversize lines other than responses that are skipped; one more ends the link
    skipped_bytes: int = 16 * MIB  # of one frame above the limit: a longer one has no end; never less than four frames

    # -- frames to messages
    nodes: int = 50_000  # values and containers in one message: 7 ms of parsing, where bytes would not bound it
    depth: int = 64
    digits: int = 128  # of one number in a row; 64 bits have 20, and converting thousands takes milliseconds
    batch: int = 50
    id_bytes: int = 256
    method_bytes: int = 1 * KIB
    error_data: int = 64 * KIB  # `error.data` beyond this is cut off before it reaches a caller

    # -- calls
    inbound_requests: int = 256  # running at once for the other side; the next is answered BUSY
    worker_threads: int = 256  # of one link; never fewer than `inbound_requests`, which may all wait for each other
    inbound_bytes: int = 16 * MIB  # of requests being served and of unfinished batches; never less than two frames
    host_inbound_bytes: int = 256 * MIB  # the same for all links of one host: 16 that are full
    outbound_calls: int = 1_024  # waiting for the other side; further calls wait for a slot
    call_depth: int = 32  # host -> extension -> host -> ...
    call_timeout: float = 60.0
    remembered_ids: int = 4_096  # cancelled or timed out: their late replies are no violation
    stray_replies: int = 100  # replies that nobody asked for, in one minute
    notifications: int = 65_536  # waiting for an async handler, in arrival order
    notification_bytes: int = 8 * MIB

    # -- writing
    send_queue: int = 8 * MIB  # bytes that the other side has not taken yet
    send_high: int = 256 * KIB  # above it `notify` waits until the other side reads

    # -- streams
    stream_events: int = 65_536
    stream_bytes: int = 8 * MIB

    # -- reading: off unless it is set, since a turn of the loop is shared fairly anyway
    message_rate: float = 0.0  # messages a second that are taken from the other side; 0 is no limit
    message_burst: int = 4_000  # that may come at once where there is a limit

    # -- one turn of the loop, so that connections share it fairly
    turn_bytes: int = 64 * KIB  # read at once; more makes the kernel and malloc ten times slower for small messages
    turn_seconds: float = 0.002  # where they take longer, less is read at once

    # -- servers on sockets
    connections: int = 256  # at once, of one server; the next is closed as soon as it is accepted
    first_message: float = 10.0  # seconds from the connection to the end of its first message; 0 is no limit
    silence: float = 0.0  # seconds without a message while nothing is in flight; 0 is no limit

    # -- child processes
    handshake: float = 10.0
    flush_grace: float = 0.5  # for frames still queued when we close
    stdin_grace: float = 2.0  # from stdin EOF to SIGTERM: one slow flush on a laptop
    term_grace: float = 2.0  # from SIGTERM to SIGKILL
    kill_grace: float = 2.0  # from SIGKILL to giving up on a process in the kernel's hands
    drain_grace: float = 0.2  # from the end of a child's pipe to its exit, which tells more
    stderr_tail: int = 64 * KIB
    stderr_line: int = 8 * KIB
    stderr_rate: int = 1 * MIB  # bytes a second handed to the log; the rest is counted
    stderr_lines: int = 2_000  # lines a second, likewise: 20 to 60 ms of logging

    # -- hooks
    hook_output: int = 32 * KIB  # bytes of a tool's output that a hook gets to see
    hook_replacement: int = 1 * MIB  # bytes that a hook may put in its place

    # -- a model that uses tools
    model_tool_calls: int = 64  # that run in one turn; the model learns how many did not
    model_tool_bytes: int = 256 * KIB  # of their outputs in one turn: eight turns fill half a frame
    model_seconds: float = 900.0  # for all turns of one answer together; 0 is no limit

    # -- extensions at rest
    manifest: int = 64 * KIB  # also grants and every other file that people write; a long one has 4 KiB
    found_entries: int = 200_000  # names in the folders in which extensions are looked for: some seconds
    digest_files: int = 20_000  # in the folder of one extension, whatever it brings along
    digest_bytes: int = 512 * MIB

    # -- what is stored for one extension
    memory_content: int = 16 * KIB
    memory_meta: int = 64 * KIB  # of compact JSON
    memory_tags: int = 64
    memory_tag: int = 256
    memory_idem: int = 256  # the key by which a repeated append is known
    memory_page: int = 1_000  # records in one answer, whatever was asked for
    memory_records: int = 100_000
    memory_bytes: int = 64 * MIB
    query_seconds: float = 1.0  # that one query of memory may take
    search_words: int = 64
    search_records: int = 1_000  # the newest that have all the words; these are ranked
    config_key: int = 256
    config_value: int = 16 * KIB
    config_keys: int = 1_000
    config_bytes: int = 1 * MIB  # keys and values together, so that a snapshot fits into a frame
    config_subscriptions: int = 1_000  # keys that one extension is notified about: as many as it can have
    config_log: int = 1_000  # changes that are remembered for those who come back; older ones need a snapshot
    store_queue: int = 16_384  # changes of all extensions that wait for the disk; the next is BUSY

    @property
    def workers(self) -> int:
        """Returns how many worker threads one link has at most: enough for all requests that run at once."""
        return max(self.worker_threads, self.inbound_requests)

    @property
    def longest_skipped(self) -> int:
        """Returns how many bytes of one frame above the limit are skipped at most."""
        return max(self.skipped_bytes, SKIPPED_FRAMES * self.frame)

    def but(self, **changes: float) -> Limits:
        """Returns a copy with these limits changed."""
        return replace(self, **changes)


DEFAULT_LIMITS = Limits()
