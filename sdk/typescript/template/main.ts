/** {{id}}: an extension of becket. */

import { createExtension } from "./becket/index.js";

const extension = createExtension({ id: "{{id}}", version: "0.1.0" });

extension.tool(
  "greet",
  {
    description: "Greets a person and stores the name.",
    input: { name: { type: "string", description: "Name of the person." } },
  },
  async ({ name }) => {
    const { config, memory } = extension.host;
    await memory.append(name);
    const times = (await memory.query({ content_contains: name })).length;
    return `${(await config.get("greeting")) ?? "Hello"}, ${name}! (${times})`;
  },
);

extension.command("{{command}}", async (_args, out) => {
  const records = await extension.host.memory.query();
  await out.table(["name"], records.map((record) => [record.content]));
});

extension.run();
