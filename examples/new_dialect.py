"""A dialect of your own in one file: `walkie`, a made-up protocol.

Its messages are lines of JSON without a version, and an error is a text. A host begins with `over`, whose response
lists what the program can do; it calls that with `do`, and ends with `out`.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
import msgspec

from becket import ExtensionServer, Method, connect_extension, tool
from becket.contract.handshake import PROTOCOL_VERSION, Capabilities, Initialize, Initialized
from becket.contract.tools import Tool, ToolCall
from becket.dialects import DIALECTS, Dialect
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult, ServerHandshake
from becket.dialects.mapping import ContractMapping, LinkState, MethodMapping, WireRequest
from becket.errors import HandshakeFailed
from becket.framing import JsonLines
from becket.jsonrpc.wire_format import WireFormat
from becket.testing import check_dialect, connected
from becket.testing.transcripts.file_format import parse_transcript

# -- messages


class Over(msgspec.Struct):
    """Names the program that is called."""

    who: str


class Here(msgspec.Struct):
    """Lists what the program can do: names and descriptions."""

    can: dict[str, str]


class Do(msgspec.Struct):
    """Calls one of these."""

    what: str
    input: dict[str, Any] = {}


OVER = Method("over", Over, Here)
DO: Method[Do, Any] = Method("do", Do, Any)
OUT = Method("out", None, None)


# -- the handshake, at both ends


def client_handshake(context: HandshakeContext) -> ClientHandshake:
    response = yield WireRequest(OVER, Over(context.extension))
    try:
        here = msgspec.json.decode(response, type=Here)
    except msgspec.ValidationError as error:
        raise HandshakeFailed(context.extension, f"its response does not list what it can do: {error}") from error
    tools = [Tool(name, described, {"type": "object"}) for name, described in here.can.items()]
    return HandshakeResult(capabilities=Capabilities(tuple(tools)))


def decode_over(params: Any, state: LinkState) -> Initialize:
    who = msgspec.convert(params, Over).who
    return Initialize(extension_protocol_version=PROTOCOL_VERSION, plugin_id=who, plugin_root=None, config={})


def encode_here(initialized: Initialized, state: LinkState) -> Here:
    return Here({one.name: one.description for one in initialized.capabilities.tools})


# -- the mapping of the contract to these messages


def build_mapping() -> ContractMapping:
    return ContractMapping(
        dialect="walkie",
        client_handshake=client_handshake,
        server_handshake=ServerHandshake(initialize_method=OVER, decode_params=decode_over, encode_result=encode_here),
        methods={
            "tool.call": MethodMapping(
                encode_request=lambda call, state: WireRequest(DO, Do(call.name, call.input)),
                wire_methods=lambda state: [DO],
                decode_request=lambda request, state: ToolCall(request.params.what, request.params.input),
            )
        },
        encode_shutdown=lambda state: WireRequest(OUT),
    )


WALKIE = Dialect(
    name="walkie",
    framing=JsonLines,
    wire_format=WireFormat(has_version=False, is_error_text=True),
    load_mapping=build_mapping,
    matches_first_frame=lambda frame, framing: framing is JsonLines and b'"over"' in frame,
)
DIALECTS.add(WALKIE)  # from here on manifests, options and `becket check` may name it


# -- a program that speaks it and knows nothing of becket

PROGRAM = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    response = {"id": request["id"], "error": "unknown method"}
    if request["method"] == "over":
        response = {"id": request["id"], "result": {"can": {"shout": "Shouts."}}}
    elif request["method"] == "do":
        response = {"id": request["id"], "result": request["params"]["input"]["text"].upper()}
    print(json.dumps(response), flush=True)
    if request["method"] == "out":
        break
"""


# -- an extension that knows nothing of the dialect


class Echo(ExtensionServer):
    id = "echo"

    @tool("Says it again.")
    async def echo(self, text: str) -> str:
        return text


# -- the expected conversation, byte for byte

RECORDED = """
{"transcript": 1, "framing": "json-lines", "dialect": "walkie"}
{"to": "child", "frame": {"id":1,"method":"over","params":{"who":"loud"}}}
{"to": "host", "frame": {"id":1,"result":{"can":{"shout":"Shouts."}}}}
{"to": "child", "frame": {"id":2,"method":"do","params":{"what":"shout","input":{"x":1}}}, "means": {"result": "A"}}
{"to": "host", "frame": {"id":2,"result":"A"}}
{"to": "child", "frame": {"id":3,"method":"do","params":{"what":"shout","input":{}}}, "means": {"error": "silence"}}
{"to": "host", "frame": {"id":3,"error":"silence"}}
{"to": "child", "frame": {"id":4,"method":"out"}}
{"to": "host", "frame": {"id":4,"result":null}}
"""


async def main() -> None:
    command, grants = [sys.executable, "-c", PROGRAM], ["tools.register"]
    async with connect_extension(command, id="loud", dialect="walkie", grants=grants) as loud:
        print("their program, our host:", await loud.call_tool("shout", {"text": "hello"}))
    async with connected(Echo(), dialect="walkie", grants=grants) as (host, _):
        print("our program, their protocol:", await host.call_tool("echo", {"text": "hello"}))
    transcript = parse_transcript(line.encode() + b"\n" for line in RECORDED.strip().splitlines())
    await check_dialect(WALKIE, [transcript])
    print("as recorded, at both ends")


if __name__ == "__main__":
    anyio.run(main)
