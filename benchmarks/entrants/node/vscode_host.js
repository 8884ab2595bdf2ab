// vscode-jsonrpc as a host.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const rpc = require('vscode-jsonrpc/node');
const { runHost } = require('./measurement.js');

async function connect([program, ...words]) {
  const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(child.stdout),
    new rpc.StreamMessageWriter(child.stdin),
  );
  let total = 0;
  connection.onNotification('tick', (params) => {
    total += params.seq;
  });
  connection.onRequest('host/echo', (params) => ({ text: params.text }));
  connection.listen();
  return {
    handshake: () => connection.sendRequest('initialize', {}),
    echo: (text) => connection.sendRequest('echo', { text }),
    count: async (count, text) => {
      total = 0;
      await connection.sendRequest('count', { count, text });
      return total;
    },
    drive: (count, text) => connection.sendRequest('drive', { count, text }),
    usage: () => connection.sendRequest('usage', {}),
    close: async () => {
      connection.dispose();
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}

runHost(connect);
