/** Offers everything that the cases of `becket conform` need. */

import { CallError, RpcError, createExtension } from "../src/index.js";

const text = { type: "string" } as const;
const integer = { type: "integer" } as const;
const onStop = (): void => {
  console.log("on_stop");
};
const conform = createExtension({ id: "conform", version: "1.0.0", onStop });

conform
  .tool("conform_echo", { description: "Returns its input.", input: { value: {} } }, ({ value }) => value)
  .tool("conform_add", { description: "Adds two integers.", input: { a: integer, b: integer } }, ({ a, b }) => a + b)
  .tool(
    "conform_sleep",
    { description: "Waits, and can be cancelled.", input: { ms: integer } },
    ({ ms }, { signal }) =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, ms, "slept");
        signal.addEventListener("abort", () => {
          clearTimeout(timer);
          resolve(null);
        });
      }),
  )
  // All handlers have one thread: the cases that need this tool expect other requests to be served meanwhile.
  .tool(
    "conform_block",
    { description: "Waits, and cannot be cancelled.", input: { ms: integer } },
    ({ ms }) => new Promise((resolve) => setTimeout(resolve, ms, "blocked")),
  )
  .tool("conform_fail", { description: "Fails unexpectedly.", input: { text } }, (input) => {
    throw new Error(input.text);
  })
  .tool("conform_reject", { description: "Rejects the call.", input: { code: integer, message: text } }, (input) => {
    throw new RpcError(input.code, input.message);
  })
  .tool(
    "conform_call",
    { description: "Calls a method of the host.", input: { method: text, params: { type: "object" } } },
    async ({ method, params }) => {
      try {
        return { result: await conform.host.call(method, params) };
      } catch (error) {
        if (error instanceof CallError) return { error: { code: error.code, message: error.message } };
        throw error;
      }
    },
  )
  .tool("conform_log", { description: "Writes to the host's log.", input: { message: text } }, ({ message }) => {
    conform.host.log(message, "warning");
  })
  .tool("conform_progress", { description: "Reports progress.", input: { count: integer } }, async (input, context) => {
    for (let number = 1; number <= input.count; number++) await context.progress(number);
    return input.count;
  })
  .tool("conform_print", { description: "Prints to stdout.", input: { text } }, (input) => {
    console.log(input.text);
    return "printed";
  })
  .tool("conform_stderr", { description: "Writes to stderr.", input: { size: integer } }, ({ size }) => {
    console.error("x".repeat(size));
    return "written";
  })
  .tool("conform_text", { description: "Returns a text.", input: { size: integer } }, ({ size }) => "x".repeat(size));

conform
  .command("conform_count", async ([last], out) => {
    if (!/^\d+$/.test(last ?? "")) throw new Error(`not a number: ${String(last)}`);
    for (let number = 1; number <= Number(last); number++) await out.text(String(number));
    return { count: Number(last) };
  })
  .command("conform_task", (args, out) =>
    out.task("Working", { kind: "rebuild", total: 2 }, async (task) => {
      await task.advance();
      await task.log("half");
      await task.advance();
      if (args.length > 0) throw new Error("stopped");
    }),
  )
  .provider(
    {
      id: "conform",
      display_name: "conform",
      description: "Repeats the last message, word by word.",
      models: [{ id: "words", context_window: 4096, capabilities: { streaming: true } }],
    },
    async ({ messages }, out) => {
      const content = messages.at(-1)?.content;
      const reply = typeof content === "string" ? content : "";
      for (const word of reply.split(/\s+/)) await out.text(word);
      return reply;
    },
  )
  .hook("before_tool_call", { tool: "conform_guarded" }, ({ tool_input: input }) => {
    const decision = (input as { decision?: string }).decision;
    if (decision === "block") return { action: "block", reason: "blocked by the case" };
    return decision === "modify" ? { action: "modify", input: { decision: "modified" } } : undefined;
  })
  .settingsEditor({
    open: () => ({ rows: [{ label: "white", data: "white" }], cursor: 0 }),
    key: () => undefined,
  });

conform.run();
console.log("before the first message");
