// The other half of raw_peer.py for Node. It knows nothing of becket and needs no package.

let buffer = Buffer.alloc(0);
let lastId = 0;
const waiting = new Map(); // our calls: id to the function that takes the answer
const sleeping = new Set(); // ids of their calls
const cancelled = new Set();

function send(message) {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  process.stdout.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
}

function call(method, params) {
  const id = ++lastId;
  send({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

const methods = {
  echo: async (params) => params,
  wasCancelled: async () => cancelled.size > 0,

  total: async ({ numbers }) => {
    let result = 0;
    for (const number of numbers) result = await call("host/add", { a: result, b: number });
    return result;
  },

  count: async ({ to }, id) => {
    for (let value = 1; value <= to; value++) send({ method: "$/progress", params: { token: id, value } });
    return "done";
  },

  sleep: (_, id) => new Promise(() => sleeping.add(id)), // answered when it is cancelled

  crash: () => new Promise(() => process.stderr.write("out of paper\n", () => process.exit(3))),
};

async function answer({ id, method, params }) {
  const handler = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (handler === undefined) return send({ id, error: { code: -32601, message: `unknown method: ${method}` } });
  send({ id, result: await handler(params, id) });
}

function receive(message) {
  if (message.method === "$/cancelRequest" && sleeping.has(message.params.id)) {
    const { id } = message.params;
    sleeping.delete(id);
    cancelled.add(id);
    send({ id, error: { code: -32800, message: "cancelled" } });
  } else if (message.method === undefined) {
    waiting.get(message.id)(message.result);
    waiting.delete(message.id);
  } else if (message.id !== undefined) {
    answer(message);
  }
}

process.stdin.on("data", (chunk) => {
  buffer = Buffer.concat([buffer, chunk]);
  for (;;) {
    const end = buffer.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/^content-length: *(\d+)/im.exec(buffer.toString("latin1", 0, end))[1]);
    const start = end + 4;
    if (buffer.length < start + length) return;
    const message = JSON.parse(buffer.toString("utf8", start, start + length));
    buffer = buffer.subarray(start + length);
    receive(message);
  }
});

process.stdin.on("end", () => process.exit(0)); // the host has closed the pipe
