// A hand-written Node peer: Content-Length frames, JSON.parse, handlers called where they are found. The replies of one
// chunk leave together, and so do the messages of one turn of the loop.
'use strict';

const CHUNK = 64 * 1024;

class Peer {
  constructor(readable, writable, handlers) {
    this.writable = writable;
    this.handlers = handlers;
    this.pending = new Map();
    this.lastId = 0;
    this.parts = [];
    this.missing = 0;
    this.queue = '';
    this.isReading = false;
    this.hasWritten = false;
    readable.on('data', (chunk) => this.receive(chunk));
  }

  call(method, params) {
    return new Promise((resolve) => {
      const id = ++this.lastId;
      this.pending.set(id, resolve);
      this.send({ jsonrpc: '2.0', id, method, params });
    });
  }

  // Returns false when the caller should wait for `drained`.
  notify(method, params) {
    this.send({ jsonrpc: '2.0', method, params });
    return !this.writable.writableNeedDrain;
  }

  drained() {
    return new Promise((resolve) => this.writable.once('drain', resolve));
  }

  send(message) {
    const body = JSON.stringify(message);
    const frame = `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    if (this.isReading || this.hasWritten) {
      if (this.queue === '' && !this.isReading) setImmediate(() => this.flush());
      this.queue += frame;
      if (this.queue.length >= CHUNK) this.writeQueue();
    } else {
      this.hasWritten = true;
      this.writable.write(frame);
    }
  }

  flush() {
    this.hasWritten = false;
    if (this.queue !== '') this.writeQueue();
  }

  writeQueue() {
    const data = this.queue;
    this.queue = '';
    this.writable.write(data);
  }

  receive(data) {
    if (this.missing > 0) {
      this.parts.push(data);
      this.missing -= data.length;
      if (this.missing > 0) return;
      data = Buffer.concat(this.parts);
      this.parts = [];
      this.missing = 0;
    }
    this.isReading = true;
    this.hasWritten = false;
    let pos = 0;
    while (pos < data.length) {
      const end = data.indexOf('\r\n\r\n', pos);
      if (end < 0) {
        this.missing = 1;
        break;
      }
      const start = end + 4;
      const stop = start + Number(data.latin1Slice(pos + 16, end));
      if (stop > data.length) {
        this.missing = stop - data.length;
        break;
      }
      this.dispatch(JSON.parse(data.utf8Slice(start, stop)));
      pos = stop;
    }
    if (pos < data.length) this.parts.push(pos > 0 ? data.subarray(pos) : data);
    this.isReading = false;
    if (this.queue !== '') this.flush();
  }

  dispatch(message) {
    if (message.method === undefined) {
      const resolve = this.pending.get(message.id);
      this.pending.delete(message.id);
      resolve(message.result);
      return;
    }
    const answer = this.handlers[message.method](message.params, this);
    if (message.id === undefined) return;
    if (answer instanceof Promise) {
      answer.then((result) => this.send({ jsonrpc: '2.0', id: message.id, result }));
    } else {
      this.send({ jsonrpc: '2.0', id: message.id, result: answer });
    }
  }
}

module.exports = { Peer };
