import assert from "node:assert/strict";
import { test } from "node:test";

import { Code, RpcError, createExtension } from "../src/index.js";
import { FEATURES, Link, open } from "./links.js";

interface Failure {
  error?: { code: number; message: string; data?: unknown };
}

test("the handshake declares what was registered", async () => {
  const it = createExtension({ id: "own", version: "1.0.0" })
    .tool("greet", { description: "Greets.", input: { name: { type: "string" } } }, ({ name }) => name)
    .hook("before_tool_call", { tool: "bash" }, () => undefined);
  const { result } = await new Link(it).initialize();
  assert.deepEqual(JSON.parse(JSON.stringify(result)), {
    protocol_version: 1,
    capabilities: {
      tools: [
        {
          name: "greet",
          input_schema: {
            type: "object",
            properties: { name: { type: "string" } },
            required: ["name"],
            additionalProperties: false,
          },
          description: "Greets.",
        },
      ],
      providers: [],
      hooks: [{ hook: "before_tool_call", match: { tool: "bash" } }],
    },
    features: FEATURES,
    id: "own",
  });
  const old = await new Link(createExtension({ id: "own", version: "1.0.0" })).initialize([]);
  assert.deepEqual(old["result"], { protocol_version: 1, capabilities: { tools: [], providers: [] } });
});

test("an extension sends its id only where the host has given it another", async () => {
  const { result } = await new Link(createExtension({ id: "it", version: "1.0.0" })).initialize();
  assert.deepEqual(Object.keys(result as object), ["protocol_version", "capabilities", "features"]);
});

test("another version of the contract is refused with those that are supported", async () => {
  const link = new Link(createExtension({ id: "own", version: "1.0.0" }));
  const { error } = (await link.ask("initialize", { extension_protocol_version: 2 })) as Failure;
  assert.deepEqual([error?.code, error?.data], [Code.INCOMPATIBLE, { supported: [1] }]);
});

test("requests before initialize and during the end are not ready, and onStop runs once", async () => {
  let stops = 0;
  const it = createExtension({ id: "own", version: "1.0.0", onStop: () => (stops += 1) });
  const link = new Link(it);
  assert.equal(((await link.ask("info.get")) as Failure).error?.code, Code.NOT_READY);
  await link.initialize();
  assert.equal(((await link.initialize()) as Failure).error?.code, Code.NOT_READY);
  assert.equal((await link.ask("shutdown"))["result"], null);
  assert.equal(((await link.ask("info.get")) as Failure).error?.code, Code.NOT_READY);
  await it.stop();
  await new Promise(setImmediate);
  assert.deepEqual([stops, link.isShutDown], [1, true]);
});

test("an error of onStart fails the handshake, and the host may try again", async () => {
  let starts = 0;
  const onStart = (): void => {
    starts += 1;
    if (starts === 1) throw new RpcError(Code.NOT_SUPPORTED, "no index");
  };
  const link = new Link(createExtension({ id: "own", version: "1.0.0", onStart }));
  assert.equal(((await link.initialize()) as Failure).error?.message, "no index");
  assert.ok("result" in (await link.initialize()));
});

test("a tool gets its defaults, and inputs that do not fit are rejected with their paths", async () => {
  const it = createExtension({ id: "own", version: "1.0.0" }).tool(
    "repeat",
    { description: "Repeats.", input: { text: { type: "string" }, times: { type: "integer", default: 2 } } },
    ({ text, times }) => text.repeat(times),
  );
  const link = await open(it);
  assert.equal((await link.ask("tool.call", { name: "repeat", input: { text: "a" } }))["result"], "aa");
  const { error } = (await link.ask("tool.call", { name: "repeat", input: { times: "x" } })) as Failure;
  assert.equal(error?.code, Code.INVALID_PARAMS);
  assert.match(error.message, /\/input\/times: expected `integer`, got `string`; \/input\/text: is missing/);
});

test("an unknown tool, command, provider or model is named", async () => {
  const models = [{ id: "small" }];
  const it = createExtension({ id: "own", version: "1.0.0" })
    .tool("a", { description: "A." }, () => 1)
    .command("b", () => 1)
    .provider({ id: "p", display_name: "P", description: "P.", models }, () => "text");
  const link = await open(it);
  const request = { model: "x", messages: [], provider_id: "p", model_id: "small" };
  const problems = [
    await link.ask("tool.call", { name: "x", input: {} }),
    await link.ask("command.invoke", { command: "x", args: [], request_id: "1" }),
    await link.ask("provider.complete", { ...request, provider_id: "x" }),
    await link.ask("provider.complete", { ...request, model_id: "x" }),
  ].map((response) => (response as Failure).error?.message);
  assert.deepEqual(problems, [
    "invalid params: /name: there is no tool 'x' here",
    "invalid params: /command: there is no command 'x' here",
    "invalid params: /provider_id: there is no provider 'x' here",
    "invalid params: /model_id: there is no model 'x' here",
  ]);
  const { result } = await link.ask("provider.complete", request);
  assert.deepEqual(result, { content: [{ type: "text", text: "text" }] });
});

test("a task that fails is reported as such, without the text of the error", async () => {
  const it = createExtension({ id: "own", version: "1.0.0" }).command("fail", (_, out) =>
    out.task("Working", {}, () => {
      throw new Error("secret");
    }),
  );
  const link = await open(it);
  link.put({ id: 2, method: "command.invoke", params: { command: "fail", args: [], request_id: "r" } });
  const messages = [await link.next(), await link.next(), await link.next()];
  assert.deepEqual(messages.map(({ method }) => method), ["task.start", "task.done", undefined]);
  assert.deepEqual((messages[1]?.["params"] as Record<string, unknown>)["error"], "failed");
  assert.equal((messages[2] as Failure).error?.code, Code.INTERNAL);
});

test("texts of several hooks are joined, and the first other result is used", async () => {
  const it = createExtension({ id: "own", version: "1.0.0" })
    .hook("before_message", {}, () => ({ action: "inject", content: "a" }))
    .hook("before_message", {}, () => undefined)
    .hook("before_message", {}, ({ message }) =>
      message === "stop" ? { action: "block", reason: "no" } : { action: "inject", content: "b" },
    );
  const link = await open(it);
  const joined = await link.ask("hook.handle", { kind: "before_message", message: "go" });
  assert.deepEqual(joined["result"], { action: "inject", content: "a\n\nb" });
  const blocked = await link.ask("hook.handle", { kind: "before_message", message: "stop" });
  assert.deepEqual(blocked["result"], { action: "block", reason: "no" });
  const other = await link.ask("hook.handle", { kind: "on_compaction" });
  assert.deepEqual(other["result"], { action: "continue" });
});

for (const [match, fitting] of [
  [{}, ["a", "b", "c"]],
  [{ tool: "bash" }, ["a", "b"]],
  [{ tool: "files_bash" }, ["a"]],
  [{ input_contains: '"n":1' }, ["a", "c"]],
  [{ input_equals: { n: 1, of: ["x"] } }, ["a"]],
  [{ tool: "bash", input_contains: "y" }, ["b"]],
] as const) {
  test(`a hook gets the events that match ${JSON.stringify(match)}`, async () => {
    const seen: unknown[] = [];
    const it = createExtension({ id: "own", version: "1.0.0" }).hook("before_tool_call", match, (event) => {
      seen.push(event.session_id);
      return undefined;
    });
    const link = await open(it);
    const bash = { kind: "before_tool_call", tool_name: "bash" };
    const own = { ...bash, session_id: "a", tool_runtime_name: "files_bash", tool_input: { of: ["x"], n: 1 } };
    await link.ask("hook.handle", own);
    await link.ask("hook.handle", { ...bash, session_id: "b", tool_input: { of: ["y"], n: 2 } });
    await link.ask("hook.handle", { ...bash, session_id: "c", tool_name: "ls", tool_input: { n: 1 } });
    assert.deepEqual(seen, fitting);
  });
}

test("a name that is declared twice is refused", () => {
  const it = createExtension({ id: "own", version: "1.0.0" }).command("show", () => 1);
  assert.throws(() => it.command("show", () => 2), /command show is declared twice/);
});

test("shutdown cancels running requests, and then runs onStop", async () => {
  const seen: string[] = [];
  const onStop = (): void => {
    seen.push("onStop");
  };
  const it = createExtension({ id: "own", version: "1.0.0", onStop }).handle("wait", async (_, { signal }) => {
    await new Promise((resolve) => {
      signal.addEventListener("abort", resolve);
    });
    seen.push("cancelled");
  });
  const link = await open(it);
  link.put({ id: 2, method: "wait" });
  link.put({ id: 3, method: "shutdown" });
  const responses = [await link.next(), await link.next()];
  assert.deepEqual(responses.map((response) => response["id"]), [2, 3]);
  assert.equal((responses[0] as Failure).error?.code, Code.CANCELLED);
  assert.deepEqual([responses[1]?.["result"], seen], [null, ["cancelled", "onStop"]]);
});

test("configuration is read, and its changes are delivered", async () => {
  const it = createExtension({ id: "own", version: "1.0.0" });
  const link = new Link(it);
  await link.initialize(FEATURES, { theme: "dark" });
  assert.deepEqual([it.config, it.root, it.host.info?.name], [{ theme: "dark" }, null, "test"]);
  const changes: unknown[] = [];
  const subscribed = it.host.config.subscribe((change) => changes.push(change.value), { keys: ["theme"] });
  const { id } = await link.next();
  link.put({ id, result: { ok: true } });
  await subscribed;
  link.put({ method: "config.changed", params: { key: "theme", value: "light", revision: 1 } });
  await new Promise(setImmediate);
  assert.deepEqual(changes, ["light"]);
});
