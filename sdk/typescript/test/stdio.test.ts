import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { createFrameDecoder } from "../src/framing.js";

const PROGRAM = fileURLToPath(new URL("./program.js", import.meta.url));

/** A program with an extension, and what it says. */
class Program {
  readonly child: ChildProcessWithoutNullStreams = spawn(process.execPath, [PROGRAM]);
  stderr = "";
  readonly exit: Promise<[number | null, string | null]>;
  readonly #messages: Record<string, unknown>[] = [];
  #wake: () => void = () => undefined;

  constructor() {
    const feed = createFrameDecoder();
    this.child.stdout.on("data", (chunk: Buffer) => {
      for (const body of feed(chunk)) this.#messages.push(JSON.parse(String(body)) as Record<string, unknown>);
      this.#wake();
    });
    this.child.stderr.on("data", (chunk: Buffer) => (this.stderr += String(chunk)));
    this.exit = new Promise((resolve) => {
      this.child.on("close", (code, signal) => {
        resolve([code, signal]);
      });
    });
    this.child.stdin.on("error", () => undefined);
    const named = { plugin_id: "it", plugin_root: null, config: {}, features: ["ping"] };
    this.put({ id: 1, method: "initialize", params: { extension_protocol_version: 1, ...named } });
  }

  put(message: object): void {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  async response(id: number): Promise<Record<string, unknown>> {
    for (;;) {
      const found = this.#messages.find((message) => message["id"] === id);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

test("prints go to stderr and not onto the wire", async () => {
  const program = new Program();
  await program.response(1);
  program.put({ id: 2, method: "print" });
  assert.equal((await program.response(2))["result"], "printed");
  program.put({ id: 3, method: "shutdown" });
  assert.equal((await program.response(3))["result"], null);
  assert.deepEqual(await program.exit, [0, null]);
  for (const line of ["after run", "by console.log", "by process.stdout", "stopped"]) {
    assert.ok(program.stderr.includes(line), line);
  }
});

test("pings are answered while a handler computes", async () => {
  const program = new Program();
  await program.response(1);
  program.put({ id: 2, method: "compute", params: { ms: 1000 } });
  program.put({ id: 3, method: "$/ping" });
  await program.response(3);
  program.put({ id: 4, method: "$/ping" });
  await program.response(4);
  assert.equal((await program.response(2))["result"], "computed");
  program.child.stdin.end();
  assert.deepEqual(await program.exit, [0, null]);
});

test("a large result arrives as a whole", async () => {
  const program = new Program();
  await program.response(1);
  program.put({ id: 2, method: "large" });
  assert.equal(String((await program.response(2))["result"]).length, 3_000_000);
  program.child.kill("SIGTERM");
  assert.deepEqual(await program.exit, [0, null]);
  assert.ok(program.stderr.includes("stopped"));
});

test("the end of stdin ends the process, also while a handler waits or computes", async () => {
  const waiting = new Program();
  await waiting.response(1);
  waiting.put({ id: 2, method: "wait" });
  waiting.child.stdin.end();
  const computing = new Program();
  await computing.response(1);
  computing.put({ id: 2, method: "compute", params: { ms: 60_000 } });
  computing.child.stdin.end();
  assert.deepEqual(await waiting.exit, [0, null]);
  assert.deepEqual(await computing.exit, [null, "SIGKILL"]);
});

test("bytes that are no frames end the process with code 3", async () => {
  const program = new Program();
  await program.response(1);
  program.child.stdin.write("hello\r\n\r\n");
  assert.deepEqual(await program.exit, [3, null]);
  assert.ok(program.stderr.includes("not a frame"));
});
