// The hand-written Node peer as a child.
'use strict';

const { Peer } = require('./peer.js');

const peer = new Peer(process.stdin, process.stdout, {
  initialize: () => ({}),
  echo: (params) => ({ text: params.text }),
  count: async (params) => {
    for (let seq = 0; seq < params.count; seq++) {
      if (!peer.notify('tick', { seq, text: params.text })) await peer.drained();
    }
    return params;
  },
  drive: async (params) => {
    for (let i = 0; i < params.count; i++) await peer.call('host/echo', { text: params.text });
    return params;
  },
  usage: () => {
    const used = process.cpuUsage();
    return { pid: process.pid, cpu: (used.user + used.system) / 1e6 };
  },
});
