// Dice, thrown by Node. It knows nothing of becket and needs no package: the files in schemas/ say all that it does.

const { randomInt } = require("node:crypto");

let id; // by which the host knows us; also the namespace of our memory
let lastId = 0;
const waiting = new Map(); // our requests: id to the function that takes the answer

// -- the contract

const methods = {
  initialize: async ({ extension_protocol_version: version, plugin_id }) => {
    if (version === undefined) throw { code: -32602, message: "extension_protocol_version is missing" };
    if (version !== 1) throw { code: 1008, message: `dice speaks version 1 of the contract, not ${version}` };
    id = plugin_id;
    log("INFO", "the dice are on the table");
    return { protocol_version: 1, capabilities: { tools: [ROLL] } };
  },

  "tool.call": async ({ name, input }) => {
    if (name !== ROLL.name) throw { code: -32602, message: `there is no tool ${name}` };
    return roll(input);
  },

  "command.invoke": async ({ command, request_id }) => {
    if (command !== "throws") throw { code: -32602, message: `there is no command ${command}` };
    const put = (event) => send({ method: "command.output", params: { request_id, event } });
    const { records } = await call("memory.query", { namespace: id, tag_prefix: "throw", limit: 10 });
    put({ kind: "table", headers: ["dice", "thrown"], rows: records.map(({ content }) => content.split(": ")) });
    put({ kind: "done" });
    return null;
  },

  "info.get": async () => ({ build: { backend: "cpu", version: "1.0.0" } }),

  shutdown: async () => {
    setImmediate(() => process.exit(0)); // when the answer has left
    return null;
  },
};

// -- the tool

const ROLL = {
  name: "roll",
  description: "Throws dice.",
  input_schema: {
    type: "object",
    properties: {
      dice: { type: "integer", minimum: 1, maximum: 20, default: 1, description: "How many." },
      sides: { type: "integer", minimum: 2, maximum: 100, default: 6, description: "How many sides each has." },
    },
    additionalProperties: false,
  },
};

async function roll({ dice = 1, sides = 6 }) {
  const thrown = Array.from({ length: dice }, () => randomInt(1, sides + 1));
  const text = `${dice}d${sides}: ${thrown.join(" ")}`;
  await call("memory.append", { namespace: id, content: text, tags: ["throw"] });
  return { content: text, thrown };
}

// -- JSON-RPC 2.0 in frames

function send(message) {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  process.stdout.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
}

function call(method, params) {
  send({ id: ++lastId, method, params });
  return new Promise((resolve, reject) => waiting.set(lastId, { resolve, reject }));
}

async function answer({ id, method, params }) {
  try {
    if (!Object.hasOwn(methods, method)) throw { code: -32601, message: `unknown method: ${method.slice(0, 100)}` };
    if (params !== undefined && (typeof params !== "object" || Array.isArray(params))) throw { code: -32602, message: "params must be an object" };
    send({ id, result: await methods[method](params ?? {}) });
  } catch ({ code = -32603, message }) {
    send({ id, error: { code, message } });
  }
}

function refuse(code, message, id = null) {
  send({ id, error: { code, message } });
}

function receive(message) {
  if (message === null || typeof message !== "object" || Array.isArray(message)) return refuse(-32600, "one object is a message");
  const own = message.id ?? null;
  if (typeof own === "boolean" || typeof own === "object" && own !== null) return refuse(-32600, "not an id");
  if (message.jsonrpc !== "2.0") return refuse(-32600, "JSON-RPC 2.0 is spoken here", own);
  if (message.method !== undefined) {
    if (typeof message.method !== "string") return refuse(-32600, "a method is a text", own);
    if (message.id !== undefined) answer(message); // notifications may be ignored
  } else if (message.result === undefined && message.error === undefined) {
    refuse(-32600, "a request needs a method", own);
  } else if (waiting.has(message.id)) {
    const { resolve, reject } = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error === undefined || message.error === null) resolve(message.result);
    else reject(new Error(`the host said: ${message.error.message}`));
  }
}

// -- frames

const HEADERS = /^content-length:[ \t]*(\d{1,10})[ \t]*$/i;
const MOST = 4 * 1024 * 1024;
const utf8 = new TextDecoder("utf-8", { fatal: true });
let buffer = Buffer.alloc(0);

function fail(why) {
  process.stderr.write(`ERROR:dice:${why}\n`);
  process.exit(1); // where the next frame begins is unknown
}

function lengthOf(header) {
  const lines = header.split("\r\n");
  const lengths = lines.map((line) => HEADERS.exec(line)).filter((found) => found !== null);
  if (lengths.length !== 1 || !lines.every((line) => /^[\w-]+:[^\n]*$/.test(line))) fail("not a header");
  if (Number(lengths[0][1]) > MOST) fail("a frame that is too large");
  return Number(lengths[0][1]);
}

process.stdin.on("data", (chunk) => {
  buffer = Buffer.concat([buffer, chunk]);
  for (;;) {
    const end = buffer.indexOf("\r\n\r\n");
    if (end < 0 && (buffer.length > 4096 || buffer.includes("\n\n"))) fail("not a header");
    if (end < 0) return;
    const start = end + 4;
    const length = lengthOf(buffer.toString("latin1", 0, end));
    if (buffer.length < start + length) return;
    const body = buffer.subarray(start, start + length);
    buffer = buffer.subarray(start + length);
    let message;
    try {
      message = JSON.parse(utf8.decode(body));
    } catch {
      refuse(-32700, "not JSON in UTF-8");
      continue;
    }
    receive(message);
  }
});

process.stdin.on("end", () => process.exit(0)); // the host has gone

function log(level, text) {
  process.stderr.write(`${level}:dice:${text}\n`); // the host's log takes the level from such a line
}
