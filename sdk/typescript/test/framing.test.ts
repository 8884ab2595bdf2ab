import assert from "node:assert/strict";
import { test } from "node:test";

import { createFrameDecoder } from "../src/framing.js";

function decode(text: string, size = text.length): string[] {
  const feed = createFrameDecoder(100);
  const found: string[] = [];
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) {
    for (const body of feed(bytes.subarray(at, at + size))) found.push(String(body));
  }
  return found;
}

test("frames are found however their bytes are cut", () => {
  const text = "Content-Length: 2\r\n\r\n{}Content-Length: 6\r\nX-Other: 1\r\n\r\n[\"ä\"]content-length:\t1 \r\n\r\n7";
  for (let size = 1; size < text.length; size++) assert.deepEqual(decode(text, size), ["{}", '["ä"]', "7"]);
});

for (const header of [
  "hello\r\n\r\n",
  "Content-Length: x\r\n\r\n",
  "Content-Length: 12345678901\r\n\r\n",
  "Content-Length: 1\r\nContent-Length: 1\r\n\r\n7",
  "Content-Type: text/plain; charset=latin1\r\nContent-Length: 1\r\n\r\n7",
  "X: 1\r\n\r\n",
  "X: 1\r\n".repeat(16) + "Content-Length: 1\r\n\r\n7",
  `X: ${"x".repeat(5000)}`,
  "Content-Length: 101\r\n\r\n",
  "a stray line\n",
]) {
  test(`bytes that are no frames are refused: ${JSON.stringify(header.slice(0, 40))}`, () => {
    assert.throws(() => decode(header), /not a frame|a frame of 101 bytes, the limit is 100/);
  });
}

test("a charset may be UTF-8", () => {
  assert.deepEqual(decode('Content-Type: x; charset="utf-8"\r\nContent-Length: 1\r\n\r\n7'), ["7"]);
});
