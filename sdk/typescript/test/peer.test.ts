import assert from "node:assert/strict";
import { test } from "node:test";

import { CallError, Code, RpcError, createExtension } from "../src/index.js";
import { Link, open } from "./links.js";

const extension = (): ReturnType<typeof createExtension> => createExtension({ id: "it", version: "1.0.0" });

function codeOf(message: Record<string, unknown>): unknown {
  return (message["error"] as { code: number } | undefined)?.code;
}

for (const [body, code, id] of [
  ['{"jsonrpc":"2.0","id":1,"method":', -32700, null],
  ["7", -32600, null],
  ["[]", -32600, null],
  ['{"id":1,"method":"x"}', -32600, 1],
  ['{"jsonrpc":"2.0","id":1}', -32600, 1],
  ['{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1],
  ['{"jsonrpc":"2.0","id":true,"method":"x"}', -32600, null],
  ['{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}', -32600, null],
  ['{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}', -32600, 1],
  ['{"jsonrpc":"2.0","id":"a","method":"none"}', -32601, "a"],
  ['{"jsonrpc":"2.0","id":1,"method":"info.get","params":7}', -32602, 1],
  ['{"jsonrpc":"2.0","id":1,"method":"info.get","params":{"a":{"b":1,"b":2}}}', -32602, 1],
] as const) {
  test(`an invalid message gets ${String(code)}: ${body}`, async () => {
    const link = new Link(extension());
    await link.peer.receive(body);
    assert.equal(codeOf(link.sent[0] ?? {}), code);
    assert.equal(link.sent[0]?.["id"], id);
  });
}

test("text that is not UTF-8 gets a parse error", async () => {
  const link = new Link(extension());
  await link.peer.receive(undefined);
  assert.equal(codeOf(link.sent[0] ?? {}), Code.PARSE_ERROR);
});

test("an id comes back as it was written", async () => {
  const bodies: string[] = [];
  const ids = ["1", "1.0", '"1"', "null", "12345678901234567890"];
  const transport = { queued: 0, send: (body: string) => bodies.push(body), drained: () => Promise.resolve() };
  const peer = extension().connect(transport, () => undefined);
  for (const id of ids) await peer.receive(`{"jsonrpc":"2.0","id":${id},"method":"x"}`);
  assert.deepEqual(bodies.map((body) => /"id":([^,]+)/.exec(body)?.[1]), ids);
});

test("an id in use is rejected under null", async () => {
  const link = await open(extension().handle("wait", () => new Promise(() => undefined)));
  link.put({ id: 3, method: "wait" });
  const response = await link.ask("wait", undefined, 3);
  assert.deepEqual([codeOf(response), response["id"]], [-32600, null]);
});

test("a batch gets one array when all its requests are complete", async () => {
  const link = await open(extension().handle("slow", () => new Promise((resolve) => setImmediate(resolve, "slow"))));
  const request = { jsonrpc: "2.0", method: "slow" };
  void link.peer.receive(JSON.stringify([{ ...request, id: 1 }, request, { ...request, id: 2, method: "$/ping" }]));
  const { batch } = (await link.next()) as { batch: { id: number }[] };
  assert.deepEqual(batch.map(({ id }) => id).sort(), [1, 2]);
});

test("a cancelled request is answered at once, and its signal is aborted", async () => {
  const aborted: unknown[] = [];
  const it = extension().handle("wait", (_, { signal }) => {
    signal.addEventListener("abort", () => aborted.push((signal.reason as RpcError).code));
    return new Promise(() => undefined);
  });
  const link = await open(it);
  link.put({ id: 2, method: "wait" });
  link.put({ method: "$/cancelRequest", params: { id: 2 } });
  assert.equal(codeOf(await link.next()), Code.CANCELLED);
  assert.deepEqual(aborted, [Code.CANCELLED]);
});

test("a request is cancelled by its id, however that is written", async () => {
  const link = await open(extension().handle("wait", () => new Promise(() => undefined)));
  void link.peer.receive('{"jsonrpc":"2.0","id":2.0,"method":"wait"}');
  link.put({ method: "$/cancelRequest", params: { id: 2 } });
  assert.equal(codeOf(await link.next()), Code.CANCELLED);
});

test("a deadline that has passed ends a request, and bounds the calls within it", async () => {
  const it = extension();
  it.handle("nested", () => it.host.call("slow"));
  const link = await open(it);
  link.put({ id: 2, method: "nested", params: { _meta: { becket: { timeout_ms: 50, depth: 3 } } } });
  const call = await link.next();
  const { becket } = (call["params"] as { _meta: { becket: Record<string, number> } })._meta;
  assert.ok((becket["timeout_ms"] ?? 99) <= 50);
  assert.deepEqual([becket["parent"], becket["depth"], becket["no_params"]], [2, 4, true]);
  const others = [await link.next(), await link.next()];
  assert.ok(others.some((message) => codeOf(message) === Code.TIMEOUT && message["id"] === 2));
  assert.ok(others.some((message) => message["method"] === "$/cancelRequest"));
});

test("a call gets progress and its result, or an error that does not leak", async () => {
  const seen: unknown[] = [];
  const it = extension();
  it.handle("call", () => it.host.call("add", { a: 1 }, { onProgress: (value) => seen.push(value) }));
  const link = await open(it);
  const { id } = await link.ask("call");
  link.put({ method: "$/progress", params: { token: id, value: 0.5 } });
  link.put({ id, result: 42 });
  assert.equal((await link.next())["result"], 42);
  assert.deepEqual(seen, [0.5]);
  const second = await link.ask("call");
  link.put({ id: second["id"], error: { code: 1003, message: "secret" } });
  const response = await link.next();
  assert.equal(codeOf(response), Code.INTERNAL);
  assert.ok(!JSON.stringify(response).includes("secret"));
});

test("a call can be cancelled and times out", async () => {
  const it = extension();
  const link = await open(it);
  const controller = new AbortController();
  const call = it.host.call("x", {}, { signal: controller.signal });
  controller.abort();
  await assert.rejects(call, (error) => error instanceof CallError && error.code === Code.CANCELLED);
  await assert.rejects(it.host.call("x", {}, { timeout: 1 }), (error) => (error as CallError).code === Code.TIMEOUT);
  assert.deepEqual(link.sent.map(({ method }) => method), ["x", "$/cancelRequest", "x", "$/cancelRequest"]);
});

test("events wait for credit", async () => {
  const it = extension().handle("count", async (_, { notify }) => {
    for (let n = 1; n <= 3; n++) await notify("event", { n });
  });
  const link = await open(it);
  link.put({ id: 2, method: "count", params: { _meta: { becket: { credit: 1 } } } });
  const first = await link.next();
  assert.deepEqual(first["params"], { _meta: { becket: { parent: 2 } }, n: 1 });
  await new Promise(setImmediate);
  assert.equal(link.sent.length, 0);
  link.put({ method: "$/credit", params: { id: 2, n: 5 } });
  assert.deepEqual([(await link.next())["method"], (await link.next())["method"]], ["event", "event"]);
  assert.equal((await link.next())["result"], null);
});

test("events wait while the host does not read, and requests get busy", async () => {
  const it = extension().handle("one", async (_, { notify }) => {
    await notify("event");
    return "done";
  });
  const link = await open(it);
  link.queued = 300_000;
  link.put({ id: 2, method: "one" });
  assert.equal((await link.next())["method"], "event");
  await new Promise(setImmediate);
  assert.equal(link.sent.length, 0);
  link.queued = 9_000_000;
  assert.equal(codeOf(await link.ask("one", undefined, 3)), Code.BUSY);
  assert.equal((await link.next())["result"], "done");
});

test("the 257th request at once gets busy, with what and how many there are", async () => {
  const link = await open(extension().handle("wait", () => new Promise(() => undefined)));
  for (let id = 1; id <= 256; id++) link.put({ id, method: "wait" });
  const { error } = await link.ask("wait", undefined, 257);
  assert.deepEqual(error, { code: Code.BUSY, message: "running requests: 257, the limit is 256" });
});

test("a result that is too large is an error", async () => {
  const link = await open(extension().handle("large", () => "x".repeat(5_000_000)));
  assert.equal(codeOf(await link.ask("large")), Code.TOO_LARGE);
});

test("absent params and an empty object are told apart", async () => {
  const link = await open(extension().handle("kind", (params) => (params === undefined ? "none" : "empty")));
  const kinds: unknown[] = [];
  for (const becket of [{ no_params: true }, { no_params: false }, {}]) {
    kinds.push((await link.ask("kind", { _meta: { becket } }))["result"]);
  }
  assert.deepEqual(kinds, ["none", "empty", "empty"]);
  const old = await open(extension().handle("kind", (params) => params === undefined), ["cancel"]);
  assert.equal((await old.ask("kind", { _meta: { becket: {} } }))["result"], true);
});

test("notifications are handled in order, one at a time", async () => {
  const seen: unknown[] = [];
  const it = extension().on("news", async (params) => {
    await new Promise(setImmediate);
    seen.push((params as { n: number }).n);
    if (seen.length === 1) throw new Error("the first fails");
  });
  const link = await open(it);
  for (let n = 1; n <= 3; n++) link.put({ method: "news", params: { n } });
  while (seen.length < 3) await new Promise(setImmediate);
  assert.deepEqual(seen, [1, 2, 3]);
});

test("the end of the link fails calls and aborts handlers", async () => {
  const it = extension();
  let signal: AbortSignal | undefined;
  it.handle("wait", (_, context) => {
    signal = context.signal;
    return new Promise(() => undefined);
  });
  const link = await open(it);
  link.put({ id: 2, method: "wait" });
  const call = it.host.call("x");
  link.peer.close();
  await assert.rejects(call, /the link has ended/);
  assert.equal(signal?.aborted, true);
});
