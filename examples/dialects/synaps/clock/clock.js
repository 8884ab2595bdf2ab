// An extension for SynapsCLI in Node, without any package.
"use strict";

const tools = [
  {
    name: "split",
    description: "Splits seconds into days, hours, minutes and seconds.",
    input_schema: { type: "object", properties: { seconds: { type: "integer" } }, required: ["seconds"] },
  },
];

function send(message) {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  process.stdout.write(`Content-Length: ${body.length}\r\n\r\n`);
  process.stdout.write(body);
}

function split({ seconds }) {
  if (seconds < 0) throw new Error("time does not run backwards");
  const parts = { d: Math.floor(seconds / 86400), h: Math.floor(seconds / 3600) % 24, m: Math.floor(seconds / 60) % 60 };
  return `${parts.d}d ${parts.h}h ${parts.m}m ${seconds % 60}s`;
}

function answer({ method, params }) {
  if (method === "initialize") return { protocol_version: 1, capabilities: { tools } };
  if (method === "tool.call" && params.name === "split") return split(params.input);
  if (method === "tool.call") throw new Error(`no tool ${params.name}`);
  throw new Error(`method not found: ${method}`);
}

function take(message) {
  if (message.id === undefined || message.method === undefined) return; // a notification, or a response
  try {
    send({ id: message.id, result: message.method === "shutdown" ? null : answer(message) });
  } catch (error) {
    send({ id: message.id, error: { code: -32000, message: error.message } });
  }
  if (message.method === "shutdown") process.exit(0);
}

let buffered = Buffer.alloc(0);
process.stdin.on("data", (chunk) => {
  buffered = Buffer.concat([buffered, chunk]);
  for (;;) {
    const end = buffered.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/content-length:\s*(\d+)/i.exec(buffered.subarray(0, end).toString())[1]);
    if (buffered.length < end + 4 + length) return;
    const body = buffered.subarray(end + 4, end + 4 + length);
    buffered = buffered.subarray(end + 4 + length);
    take(JSON.parse(body.toString()));
  }
});
process.stdin.on("end", () => process.exit(0));
