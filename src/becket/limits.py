"""Every limit of becket in one frozen class, with its default and the reason for it.

Limits are data: nothing here enforces anything. Code that enforces a limit takes a `Limits` as a constructor
argument; there is no module-level setting.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["DEFAULT_LIMITS", "Limits"]

KIB = 1024
MIB = 1024 * KIB
SKIPPED_FRAMES = 4  # one skipped response may be this many times as long as a frame


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds of one connection, and of the storage of its extension. `limits.but(frame=...)` returns a changed copy."""

    # -- bytes to frames
    frame: int = 4 * MIB  # one message body; larger payloads travel as a path
    header: int = 4 * KIB  # the header block of one frame
    header_lines: int = 16
    stray: int = 64 * KIB  # bytes outside frames that a lenient reader drops before it fails
    partial_frame: float = 10.0  # seconds from a frame's first byte, not renewed by progress
    partial_frame_rate: int = 64 * KIB  # bytes a second that a large body must sustain after that
    skipped_frames: int = 1  # oversize lines other than responses that are skipped; one more closes the connection
    skipped_bytes: int = 16 * MIB  # of one oversize frame; a longer one counts as endless; at least four frames

    # -- frames to messages
    nodes: int = 50_000  # values and containers in one message: 7 ms of parsing, which bytes alone would not bound
    depth: int = 64
    digits: int = 128  # of one number; 64 bits have 20, and converting thousands takes milliseconds
    batch: int = 50
    id_bytes: int = 256
    method_bytes: int = 1 * KIB
    error_data: int = 64 * KIB  # `error.data` beyond this is removed before it reaches a caller

    # -- calls
    inbound_requests: int = 256  # running at once for the other peer; the next is rejected with BUSY
    worker_threads: int = 256  # of one connection; at least `inbound_requests`, which may all wait for each other
    inbound_bytes: int = 16 * MIB  # of running requests and unfinished batches; at least two frames
    host_inbound_bytes: int = 256 * MIB  # the same for all connections of one host: 16 full ones
    outbound_calls: int = 1_024  # pending; further calls wait for a slot
    call_depth: int = 32  # host -> extension -> host -> ...
    call_timeout: float = 60.0
    remembered_ids: int = 4_096  # cancelled or timed out: their late responses are not violations
    stray_replies: int = 100  # unexpected responses in one minute
    notifications: int = 65_536  # waiting for an async handler, in arrival order
    notification_bytes: int = 8 * MIB

    # -- writing
    send_queue: int = 8 * MIB  # bytes that the other peer has not read yet
    send_high: int = 256 * KIB  # above it `notify` waits until the other peer reads

    # -- streams
    stream_events: int = 65_536
    stream_bytes: int = 8 * MIB

    # -- reading: off by default, since loop iterations are shared fairly anyway
    message_rate: float = 0.0  # messages a second read from the other peer; 0 is no limit
    message_burst: int = 4_000  # that may arrive at once where there is a limit

    # -- one loop iteration, so that connections share the loop fairly
    turn_bytes: int = 64 * KIB  # read at once; more makes the kernel and malloc ten times slower for small messages
    turn_seconds: float = 0.002  # if handling takes longer, less is read at once

    # -- servers on sockets
    connections: int = 256  # at once, of one server; the next is closed as soon as it is accepted
    first_message: float = 10.0  # seconds from the connection to the end of its first message; 0 is no limit
    silence: float = 0.0  # seconds without a message while nothing is in flight; 0 is no limit

    # -- child processes
    handshake: float = 10.0
    flush_grace: float = 0.5  # for frames still queued at close
    stdin_grace: float = 2.0  # from stdin EOF to SIGTERM: one slow flush on a laptop
    term_grace: float = 2.0  # from SIGTERM to SIGKILL
    kill_grace: float = 2.0  # from SIGKILL to giving up on a process blocked in the kernel
    drain_grace: float = 0.2  # from the end of a child's pipe to its exit status
    stderr_tail: int = 64 * KIB
    stderr_line: int = 8 * KIB
    stderr_rate: int = 1 * MIB  # bytes a second written to the log; the rest is counted
    stderr_lines: int = 2_000  # lines a second, likewise: 20 to 60 ms of logging

    # -- hooks
    hook_output: int = 32 * KIB  # bytes of a tool's output that a hook receives
    hook_replacement: int = 1 * MIB  # bytes of a hook's replacement for it

    # -- models that call tools
    model_tool_calls: int = 64  # in one turn; the model receives the number that did not run
    model_tool_bytes: int = 256 * KIB  # of their outputs in one turn: eight turns fill half a frame
    model_seconds: float = 900.0  # for all turns of one response together; 0 is no limit

    # -- extensions on disk
    manifest: int = 64 * KIB  # also grants and every other file that people write; a long one has 4 KiB
    found_entries: int = 200_000  # names in the folders searched for extensions: some seconds
    digest_files: int = 20_000  # in the folder of one extension, with all its dependencies
    digest_bytes: int = 512 * MIB

    # -- storage for one extension
    memory_content: int = 16 * KIB
    memory_meta: int = 64 * KIB  # of compact JSON
    memory_tags: int = 64
    memory_tag: int = 256
    memory_idem: int = 256  # the key that identifies a repeated append
    memory_page: int = 1_000  # records in one response, whatever the query's limit
    memory_records: int = 100_000
    memory_bytes: int = 64 * MIB
    query_seconds: float = 1.0  # of one memory query
    search_words: int = 64
    search_records: int = 1_000  # the newest that contain all words; these are ranked
    config_key: int = 256
    config_value: int = 16 * KIB
    config_keys: int = 1_000
    config_bytes: int = 1 * MIB  # keys and values together, so that a snapshot fits into a frame
    config_subscriptions: int = 1_000  # keys that one extension subscribes to: as many as it can have
    config_log: int = 1_000  # changes in the log for subscribers that reconnect; older ones need a snapshot
    store_queue: int = 16_384  # changes of all extensions waiting for the disk; the next is rejected with BUSY

    @property
    def workers(self) -> int:
        """The maximum of worker threads of one connection: enough for all requests that run at once."""
        return max(self.worker_threads, self.inbound_requests)

    @property
    def longest_skipped(self) -> int:
        """The maximum of bytes skipped of one oversize frame."""
        return max(self.skipped_bytes, SKIPPED_FRAMES * self.frame)

    def but(self, **changes: float) -> Limits:
        """Returns a copy with these limits changed."""
        return replace(self, **changes)


DEFAULT_LIMITS = Limits()
