"""One session over a link in memory: what the suite writes, and when."""

from __future__ import annotations

from becket.conformance.case import RoleSetup
from becket.conformance.script import Role, parse_script
from becket.conformance.session import Session
from becket.conformance.wire_codec import JsonWire


class MemoryLink:
    """A link whose program has sent some lines already."""

    stderr = ""

    def __init__(self, *lines: str) -> None:
        self.written: list[bytes] = []
        self._incoming = [f"{line}\n".encode() for line in lines]

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def read(self, timeout: float) -> bytes | None:
        return self._incoming.pop(0) if self._incoming else None

    def close_output(self) -> None: ...

    def wait_exit(self, timeout: float) -> int | None:
        return None

    def send_signal(self, number: int) -> None: ...

    def kill(self) -> None: ...


def test_no_response_of_the_suite_gets_between_the_chunks_of_a_frame() -> None:
    link = MemoryLink(
        '{"jsonrpc": "2.0", "id": 5, "method": "becket/noSuchMethod"}', '{"jsonrpc": "2.0", "id": 6, "result": 1}'
    )
    script = """
< split 1 {"id": 6, "method": "echo"}
> {"id": 6, "result": 1}
"""

    Session(link, JsonWire("json-lines"), RoleSetup(), 1.0).run(parse_script(script, Role.HOST))

    first, second = b"".join(link.written).splitlines()
    assert first == b'{"jsonrpc":"2.0","id":6,"method":"echo"}'
    assert second.startswith(b'{"jsonrpc":"2.0","id":5,"error"')


def test_a_held_request_of_the_program_waits_for_the_next_script() -> None:
    link = MemoryLink('{"jsonrpc": "2.0", "id": 6, "result": 1}', '{"jsonrpc": "2.0", "id": 1, "method": "next"}')
    session = Session(link, JsonWire("json-lines"), RoleSetup(holds=("next",)), 1.0)
    session.run(parse_script('< {"id": 6, "method": "echo"}\n> {"id": 6}\nwait 1ms', Role.HOST))

    session.begin(session.conversation)
    session.run(parse_script('> {"id": "$let:next", "method": "next"}', Role.HOST))

    assert session.variables["next"] == 1
