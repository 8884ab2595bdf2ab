/** One of everything: what an extension can offer, written with the kit. */

import { type Schema, createExtension } from "../dist/index.js";

const COLOURS = ["white", "blue", "red"];
const text = { type: "string" } as const satisfies Schema;
let cursor = 0;

const example = createExtension({ id: "typescript", version: "0.2.0" });

// -- tools

example.tool(
  "greet",
  {
    description: "Greets a person.",
    input: { name: text, times: { type: "integer", minimum: 1, maximum: 10, default: 1 } },
    read_only: true,
  },
  async ({ name, times }) => {
    const greeting = (await example.host.config.get("greeting")) ?? "Hello";
    return Array<string>(times).fill(`${greeting}, ${name}!`).join(" ");
  },
);

example.tool("keep", { description: "Keeps a note.", input: { text } }, async (input) => {
  await example.host.memory.append(input.text, { tags: ["note"] });
  example.host.log(`kept: ${input.text}`);
  return (await example.host.memory.query()).length;
});

example.tool("wait", { description: "Waits until it is cancelled." }, async (_, context) => {
  await context.progress("waiting");
  await new Promise((resolve) => {
    context.signal.addEventListener("abort", resolve);
  });
});

// -- a command

example.command("letters", async (words, out) => {
  if (words.length === 0) {
    await out.system("Usage: letters WORD...");
    return {};
  }
  const counted = await out.task("Counting letters", { total: words.length }, async (task) => {
    const letters: Record<string, number> = {};
    for (const word of words) {
      letters[word] = word.length;
      await task.advance(1, word);
    }
    return letters;
  });
  await out.table(["word", "letters"], Object.entries(counted).map(([word, letters]) => [word, String(letters)]));
  return counted;
});

// -- a provider of models

example.provider(
  {
    id: "parrot",
    display_name: "Parrot",
    description: "Repeats its prompt.",
    models: [{ id: "small", capabilities: { streaming: true, tool_use: false } }],
  },
  async (request, out) => {
    const content = request.messages.filter(({ role }) => role === "user").at(-1)?.content ?? "";
    const reply = `You said: ${typeof content === "string" ? content : JSON.stringify(content)}`;
    for (const word of reply.match(/\S+\s*/g) ?? []) await out.text(word);
    await out.usage({ output_tokens: reply.split(" ").length });
    return reply;
  },
);

// -- a hook

example.hook("before_tool_call", { tool: "bash" }, (event) =>
  JSON.stringify(event.tool_input).includes("rm -rf")
    ? { action: "block", reason: "it would delete everything" }
    : undefined,
);

// -- a settings editor

const draw = () => ({ rows: COLOURS.map((label) => ({ label, data: label })), cursor });

example.settingsEditor({
  open: draw,
  key({ key }) {
    if (key === "Enter") return { value: COLOURS[cursor] ?? "" };
    if (key === "Esc") return { reason: "nothing has changed" };
    if (key !== "Up" && key !== "Down") return undefined;
    cursor = (cursor + (key === "Down" ? 1 : COLOURS.length - 1)) % COLOURS.length;
    return draw();
  },
});

example.run();
