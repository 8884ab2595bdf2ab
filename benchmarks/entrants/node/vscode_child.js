// vscode-jsonrpc as a child.
'use strict';

const rpc = require('vscode-jsonrpc/node');

const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(process.stdin),
  new rpc.StreamMessageWriter(process.stdout),
);
connection.onRequest('initialize', () => ({}));
connection.onRequest('echo', (params) => ({ text: params.text }));
connection.onRequest('count', async (params) => {
  for (let seq = 0; seq < params.count; seq++) {
    await connection.sendNotification('tick', { seq, text: params.text });
  }
  return params;
});
connection.onRequest('drive', async (params) => {
  for (let i = 0; i < params.count; i++) await connection.sendRequest('host/echo', { text: params.text });
  return params;
});
connection.onRequest('usage', () => {
  const used = process.cpuUsage();
  return { pid: process.pid, cpu: (used.user + used.system) / 1e6 };
});
connection.onClose(() => process.exit(0));
connection.listen();
