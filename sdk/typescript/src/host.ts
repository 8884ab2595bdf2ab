/** What a host offers its extensions: memory, configuration, the log, and any other method. */

import type {
  Append,
  Appended,
  ConfigChanged,
  ConfigSaved,
  ConfigSet,
  ConfigSubscribe,
  ConfigSubscribed,
  ConfigValue,
  HostInfo,
  HostMethods,
  HostNotifications,
  Initialize,
  Json,
  LogLevel,
  Record as MemoryRecord,
  Query,
} from "./contract.js";
import { describe } from "./errors.js";
import { MAX_QUEUE } from "./limits.js";
import type { CallOptions, Peer, Transport } from "./peer.js";

/** The host of an extension. */
export interface HostClient {
  /** The id by which the host knows this extension. */
  readonly extensionId: string;
  /** Name and version of the host, if it sent them. */
  readonly info: HostInfo | undefined;
  /** What the host keeps for this extension. Needs `memory.read` and `memory.write`. */
  readonly memory: Memory;
  /** The configuration of this extension. Needs `config.write` to set and `config.subscribe` to watch. */
  readonly config: Config;
  /** Calls a method of the host. Throws a `CallError` if it fails. */
  call<M extends keyof HostMethods>(
    method: M,
    params: HostMethods[M]["params"],
    options?: CallOptions,
  ): Promise<HostMethods[M]["result"]>;
  call(method: string, params?: object, options?: CallOptions): Promise<Json>;
  /** Sends the host a notification: a widget, say, or what a settings editor shows now. */
  notify<M extends keyof HostNotifications>(method: M, params: HostNotifications[M]): Promise<void>;
  notify(method: string, params?: object): Promise<void>;
  /** Writes to the host's log; never waits. A host without the feature `log` gets a line on stderr. */
  log(message: unknown, level?: LogLevel, logger?: string): void;
}

/** What the host keeps for this extension. */
export interface Memory {
  /** Keeps a record, and resolves when it is durable. With the same `idem` again nothing is added. */
  append(content: string, options?: Omit<Append, "namespace" | "content">): Promise<Appended>;
  /** Returns the records for which all conditions hold, the newest first; 50 at most unless `limit` is set. */
  query(conditions?: Omit<Query, "namespace">): Promise<readonly MemoryRecord[]>;
}

/** The configuration of this extension, as the host keeps it: values are strings. */
export interface Config {
  /** Returns a value, null if there is none. */
  get(key: string): Promise<string | null>;
  /** Returns a value with its revision. */
  read(key: string): Promise<ConfigValue>;
  /** Changes a value, and resolves when it is durable. With `if_revision` only if it has not changed since. */
  set(key: string, value: string, options?: Omit<ConfigSet, "key" | "value">): Promise<ConfigSaved>;
  /** Calls a function for each change: of these keys, or all; after the revision `since`, or after the snapshot. */
  subscribe(onChange: (change: ConfigChanged) => unknown, options?: ConfigSubscribe): Promise<ConfigSubscribed>;
}

/** Returns a client of the host at the other end of a link, which sent these params of `initialize`. */
export const createHostClient = (peer: Peer, transport: Transport, params: Initialize): HostClient => {
  const extensionId = params.plugin_id;
  const call = peer.call as HostClient["call"];
  const read = (key: string): Promise<ConfigValue> => call("config.get", { key });
  return {
    extensionId,
    info: params.host ?? undefined,
    call,
    notify: peer.notify,
    memory: {
      append: (content, options) => call("memory.append", { namespace: extensionId, content, ...options }),
      query: async (conditions) => (await call("memory.query", { namespace: extensionId, ...conditions })).records,
    },
    config: {
      read,
      get: async (key) => (await read(key)).value ?? null,
      set: (key, value, options) => call("config.set", { key, value, ...options }),
      subscribe(onChange, options = {}) {
        peer.listeners.set("config.changed", (change) => onChange(change as ConfigChanged));
        return call("config.subscribe", options);
      },
    },
    log(message, level = "info", logger = extensionId) {
      const text = describe(message);
      if (!peer.features.has("log") || transport.queued > MAX_QUEUE) writeLog(text, level, logger);
      else void peer.notify("$/log", { level, logger, message: text });
    },
  };
};

/** Writes lines to stderr in the form that hosts recognise. */
export const writeLog = (message: string, level: LogLevel, logger: string): void => {
  console.error(message.replace(/^/gm, `${level.toUpperCase()}:${logger}:`));
};
