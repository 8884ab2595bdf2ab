// A process extension of Roder in Node, without any package: one tool that rolls dice.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");

const file = process.env.RODER_EXTENSION_MANIFEST || path.join(__dirname, "roder-extension.toml");
const manifest = fs.readFileSync(file);

// The first answer repeats the manifest; a reader of TOML would be a package.
const services = [
  {
    type: "tool_provider",
    id: "dice",
    tools: [
      {
        name: "roll",
        description: "Rolls dice and adds them up.",
        parameters: {
          type: "object",
          properties: { sides: { type: "integer", minimum: 1 }, times: { type: "integer", minimum: 1 } },
          required: ["sides"],
        },
      },
    ],
  },
];

function fnv1a(data) {
  let number = 0xcbf29ce484222325n;
  for (const byte of data) number = ((number ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return number.toString(16).padStart(16, "0");
}

function roll({ sides, times = 1 }) {
  if (times > 100) return { content: "there are only 100 dice", isError: true };
  const dice = Array.from({ length: times }, () => 1 + Math.floor(Math.random() * sides));
  const sum = dice.reduce((one, other) => one + other, 0);
  return { content: `rolled ${sum}`, isError: false, data: { dice } };
}

const asked = {
  "extension/initialize": () => ({
    protocolVersion: "0.2.0",
    extensionId: "dice",
    services,
    manifestChecksum: fnv1a(manifest),
  }),
  "tools/call": (params) =>
    params.toolName === "roll" ? roll(params.arguments) : { content: `there is no tool ${params.toolName}`, isError: true },
  "extension/shutdown": () => ({}),
};

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    return; // lines that are not messages are skipped
  }
  const { id, method, params } = message;
  if (id === undefined || method === undefined) return; // an event, or a response
  const answer = asked[method]
    ? { result: asked[method](params) }
    : { error: { code: -32601, message: `unknown method ${method}` } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...answer }) + "\n");
  if (method === "extension/shutdown") process.exit(0);
});
