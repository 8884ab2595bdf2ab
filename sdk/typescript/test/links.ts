/** A host in the same program, for tests: it sends bodies to an extension and collects what comes back. */

import { after } from "node:test";

import type { Extension, Peer, Transport } from "../src/index.js";

export const FEATURES = ["cancel", "progress", "deadline", "credit", "ping", "log", "no_params"];

// The timers of a peer do not keep a program running: these tests end when they have ended.
const running = setInterval(() => undefined, 1_000);
after(() => {
  clearInterval(running);
});

type Message = Record<string, unknown>;

/** The host's end of a link. */
export class Link implements Transport {
  /** What the extension has sent and `next` has not returned. */
  readonly sent: Message[] = [];
  queued = 0;
  readonly peer: Peer;
  isShutDown = false;
  #waiting: (() => void)[] = [];

  constructor(extension: Extension) {
    this.peer = extension.connect(this, () => {
      this.isShutDown = true;
    });
  }

  send(body: string): void {
    const value = JSON.parse(body) as Message | Message[];
    this.sent.push(...(Array.isArray(value) ? [{ batch: value }] : [value]));
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  drained(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Sends a message to the extension. */
  put(message: object): void {
    void this.peer.receive(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }

  /** Returns the next message of the extension. */
  async next(): Promise<Message> {
    for (;;) {
      const message = this.sent.shift();
      if (message !== undefined) return message;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Sends a request and returns its response, or whatever else comes first. */
  async ask(method: string, params?: object, id: unknown = 7): Promise<Message> {
    this.put({ id, method, params });
    return this.next();
  }

  async initialize(features: string[] = FEATURES, config: object = {}): Promise<Message> {
    const host = { name: "test", version: "1" };
    const params = { extension_protocol_version: 1, plugin_id: "it", plugin_root: null, config, host, features };
    return this.ask("initialize", params, 1);
  }
}

/** Returns a link to an extension that is ready. */
export async function open(extension: Extension, features?: string[]): Promise<Link> {
  const link = new Link(extension);
  await link.initialize(features);
  return link;
}
