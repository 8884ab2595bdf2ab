// A client on VS Code's own JSON-RPC: starts the server that it is given, and prints what came of its calls.
const { spawn } = require("child_process");
const rpc = require("vscode-jsonrpc/node");

async function main([command, ...args]) {
  const server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const link = rpc.createMessageConnection(
    new rpc.StreamMessageReader(server.stdout),
    new rpc.StreamMessageWriter(server.stdin),
  );
  const found = { progress: [], diagnostics: [], partial: 0 };
  link.onRequest("window/showMessageRequest", (params) => params.actions[0]);
  link.onNotification("textDocument/publishDiagnostics", (params) => {
    found.diagnostics.push(...params.diagnostics.map((one) => one.message));
  });
  link.onProgress(new rpc.ProgressType(), "work", (value) => found.progress.push(value.kind));
  link.onProgress(new rpc.ProgressType(), "part", (value) => (found.partial += value.length));
  link.listen();

  const code = (promise) => promise.then(() => 0, (error) => error.code);
  const begun = await link.sendRequest("initialize", { processId: process.pid, rootUri: null, capabilities: {} });
  found.server = begun.serverInfo;
  link.sendNotification("initialized", {});
  const document = { uri: "file:///a.py", languageId: "python", version: 1, text: "hello\n" };
  link.sendNotification("textDocument/didOpen", { textDocument: document });
  const place = { textDocument: { uri: document.uri }, position: { line: 0, character: 0 } };
  found.hover = await link.sendRequest("textDocument/hover", place);
  found.chosen = await link.sendRequest("workspace/executeCommand", { command: "count.ask" });
  await link.sendRequest("textDocument/references", {
    ...place, context: { includeDeclaration: true }, workDoneToken: "work", partialResultToken: "part",
  });
  const source = new rpc.CancellationTokenSource();
  const pending = code(link.sendRequest("textDocument/definition", place, source.token));
  source.cancel();
  found.cancelled = await pending;
  found.unknown = await code(link.sendRequest("no/such", {}));
  found.invalid = await code(link.sendRequest("textDocument/hover", { textDocument: {} }));

  await link.sendRequest("shutdown");
  const ended = new Promise((resolve) => server.on("exit", resolve));
  link.sendNotification("exit");
  found.exit = await ended;
  console.log(JSON.stringify(found));
}

main(process.argv.slice(2));
