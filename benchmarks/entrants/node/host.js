// The hand-written Node peer as a host.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { runHost } = require('./measurement.js');
const { Peer } = require('./peer.js');

async function connect([program, ...words]) {
  const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  let total = 0;
  const peer = new Peer(child.stdout, child.stdin, {
    tick: (params) => {
      total += params.seq;
    },
    'host/echo': (params) => ({ text: params.text }),
  });
  return {
    handshake: () => peer.call('initialize', {}),
    echo: (text) => peer.call('echo', { text }),
    count: async (count, text) => {
      total = 0;
      await peer.call('count', { count, text });
      return total;
    },
    drive: (count, text) => peer.call('drive', { count, text }),
    usage: () => peer.call('usage', {}),
    close: async () => {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}

runHost(connect);
