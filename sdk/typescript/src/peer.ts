/** A JSON-RPC peer: requests, responses, notifications and batches in both directions. It knows no stream. */

import { AsyncLocalStorage } from "node:async_hooks";

import {
  BUSY,
  CANCELLED,
  INTERNAL,
  INVALID_REQUEST,
  type Json,
  PARSE_ERROR,
  TIMEOUT,
  TOO_LARGE,
  UNKNOWN_METHOD,
} from "./contract.js";
import { CallError, RpcError, checkLimit, checkParams, describe, problem } from "./errors.js";
import { type Parsed, encode, isArray, isObject, membersOf, parseJson } from "./json.js";
import {
  CALL_TIMEOUT,
  HIGH_QUEUE,
  MAX_BATCH,
  MAX_DEPTH,
  MAX_FRAME,
  MAX_ID_BYTES,
  MAX_QUEUE,
  MAX_REQUESTS,
  MAX_REQUEST_BYTES,
  MAX_TIMER,
} from "./limits.js";

/** Where a peer sends its messages. */
export interface Transport {
  /** Bytes that were sent and not read. */
  readonly queued: number;
  /** Sends the body of one frame. */
  send(body: string): void;
  /** Resolves when the other peer has read what was sent. */
  drained(): Promise<void>;
}

/** What a handler knows of its request. */
export interface Context {
  /** The method of the request. */
  readonly method: string;
  /** The metadata of the call, `params._meta`. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** Aborted when the caller cancels the request, when its deadline has passed, and when the link ends. */
  readonly signal: AbortSignal;
  /** Returns the milliseconds until the caller stops waiting; infinity if it did not say. */
  readonly remaining: () => number;
  /** Reports progress. Waits while the caller is behind with reading; throws if the request was cancelled. */
  readonly progress: (value: unknown) => Promise<void>;
  /** Sends a notification that belongs to this request. Waits and throws as `progress` does. */
  readonly notify: (method: string, params?: object) => Promise<void>;
}

/** Serves a request: returns its result, or a promise of it. */
export type Handler = (params: unknown, context: Context) => unknown;

/** Options of a call. */
export interface CallOptions {
  /** Milliseconds to wait, at most until the deadline of the request that the call belongs to; 60 000 by default. */
  timeout?: number;
  /** Cancels the call. */
  signal?: AbortSignal;
  /** Gets the progress that the other peer reports. */
  onProgress?: (value: Json) => void;
}

/** One end of a link. */
export interface Peer {
  /** The features that both peers have announced. */
  features: ReadonlySet<string>;
  /** The handlers of notifications, which are called one after the other, in the order of arrival. */
  readonly listeners: Map<string, (params: unknown) => unknown>;
  /** Returns whether a request has not got its response. */
  readonly isBusy: () => boolean;
  /** Calls a method of the other peer. Throws a `CallError` if it fails. */
  readonly call: (method: string, params?: object, options?: CallOptions) => Promise<Json>;
  /** Sends a notification. Waits while the other peer is behind with reading. */
  readonly notify: (method: string, params?: object) => Promise<void>;
  /** Handles the body of a frame, undefined if it was not UTF-8. Resolves when its response, if any, was sent. */
  readonly receive: (body: string | undefined) => Promise<void>;
  /** Responds to all requests but `shutdown` with an error, and aborts their signals. */
  readonly reject: (error: Error) => void;
  /** Ends the link: pending calls fail, and the signals of running requests are aborted. */
  readonly close: () => void;
}

type Members = Record<string, unknown>;

/** The request that a handler serves, for the calls that it makes. */
interface Scope extends Context {
  /** Returns the metadata of a call. */
  readonly callMeta: () => object;
}

interface Call {
  onProgress: CallOptions["onProgress"];
  settle: (error?: Error, result?: unknown) => void;
}

interface Request {
  abort: (error: Error) => void;
  grant: (credit: number) => void;
}

/** Starts a timer that does not keep the process running. */
const startTimer = (run: () => void, delay: number): NodeJS.Timeout =>
  setTimeout(run, Math.min(delay, MAX_TIMER)).unref();

const scopes = new AsyncLocalStorage<Scope>();

/** Returns a peer with these handlers. `log` gets what must not leave the process: errors of handlers. */
export const createPeer = (
  transport: Transport,
  handlers: ReadonlyMap<string, Handler>,
  listeners: Map<string, (params: unknown) => unknown>,
  log: (message: string) => void,
): Peer => {
  const calls = new Map<unknown, Call>();
  const requests = new Map<unknown, Request>();
  let running = 0; // handlers that have not ended, also those of requests that were cancelled
  let runningBytes = 0;
  let notified = Promise.resolve();
  let lastId = 0;
  let lost: Error | undefined;
  const has = (feature: string): boolean => peer.features.has(feature);

  // -- out

  const send = (message: object): void => {
    if (lost) throw lost;
    transport.send(checkSize(encode({ jsonrpc: "2.0", ...message })));
  };

  const notify = async (method: string, params?: object): Promise<void> => {
    send({ method, params });
    if (transport.queued > HIGH_QUEUE) await transport.drained();
  };

  const call = async (
    method: string,
    params?: object,
    { timeout = CALL_TIMEOUT, signal, onProgress }: CallOptions = {},
  ): Promise<Json> => {
    const scope = scopes.getStore();
    const limit = Math.min(timeout, scope?.remaining() ?? Infinity);
    const id = ++lastId;
    send({ id, method, params: withMeta(params, limit, scope) });
    // A handler that was cancelled may still call, to tidy up: such a call is not cancelled with it.
    const outer = scope?.signal;
    const signals = [signal, outer?.aborted ? undefined : outer];
    return new Promise((resolve, reject) => {
      const abandon = (code: number, problem: string): void => {
        settle(new CallError(code, `${method}: ${problem}`));
        if (has("cancel")) void notify("$/cancelRequest", { id });
      };
      const onAbort = (): void => {
        abandon(CANCELLED, "cancelled");
      };
      const onTimeout = (): void => {
        abandon(TIMEOUT, `no response within ${timeout} ms`);
      };
      const timer = startTimer(onTimeout, timeout);
      const settle: Call["settle"] = (error, result) => {
        clearTimeout(timer);
        calls.delete(id);
        for (const each of signals) each?.removeEventListener("abort", onAbort);
        if (error) reject(error);
        else resolve(result as Json);
      };
      calls.set(id, { onProgress, settle });
      for (const each of signals) each?.addEventListener("abort", onAbort);
      if (signal?.aborted) onAbort();
    });
  };

  const withMeta = (params: object | undefined, limit: number, scope: Scope | undefined): object | undefined => {
    if (!has("deadline") || isArray(params)) return params;
    const becket = {
      timeout_ms: Math.max(1, Math.round(limit)), // infinity is written as null, which means the same
      ...scope?.callMeta(),
      no_params: has("no_params") && !Object.keys(params ?? {}).length ? !params : undefined,
    };
    return { _meta: { becket }, ...params };
  };

  // -- in

  const receive = async (body = ""): Promise<void> => {
    let response: string | undefined;
    try {
      const parsed = parseJson(body);
      response = await (isArray(parsed.value) ? receiveBatch(parsed.elements) : receiveMessage(parsed, body.length));
    } catch (error) {
      const unreadable = new RpcError(PARSE_ERROR, "the body is not JSON in UTF-8");
      response = encodeError("null", error instanceof RpcError ? error : unreadable);
    }
    if (response && !lost) transport.send(response);
  };

  const receiveBatch = async (elements: string[]): Promise<string | undefined> => {
    if (!elements[0]) throw invalid("the batch is empty");
    checkLimit(TOO_LARGE, "messages of a batch", elements.length, MAX_BATCH);
    const all = await Promise.all(elements.map((text) => receiveMessage(parseJson(text), text.length)));
    const responses = all.filter(Boolean);
    return responses[0] && checkSize(`[${responses.join()}]`);
  };

  /** Returns the response to a message, undefined if it gets none. */
  const receiveMessage = async (parsed: Parsed, bytes: number): Promise<string | undefined> => {
    const { value, twice } = parsed;
    const message = membersOf(value);
    const { jsonrpc, method, params } = message;
    if (!method && ("result" in message || "error" in message)) {
      settleCall(message);
      return undefined;
    }
    const isUsed = requests.has(message["id"]);
    const id = isUsed ? null : readId(parsed);
    try {
      const isTwice = twice.some((pointer) => !pointer.lastIndexOf("/")); // in the envelope
      if (id === null) throw invalid(isUsed ? "its id is in use" : "its id must be a number or a short string");
      if (isTwice || jsonrpc !== "2.0" || !method || typeof method !== "string") throw invalid("not JSON-RPC 2.0");
      if (id === undefined) {
        receiveNotification(method, params);
        return undefined;
      }
      return method === "$/ping" ? encodeResult(id, null) : await receiveRequest(id, method, parsed, bytes);
    } catch (error) {
      return encodeError(id ?? "null", toRpcError(error, String(method)));
    }
  };

  /** Returns the response to a request; throws if it is an error. */
  const receiveRequest = async (id: string, method: string, parsed: Parsed, bytes: number): Promise<string> => {
    const { id: parent, params } = parsed.value as Members; // the id as a value
    const handler = handlers.get(method);
    if (!handler) throw new RpcError(UNKNOWN_METHOD, `unknown method: ${method.slice(0, 80)}`);
    if (params && typeof params !== "object") checkParams([problem("", "not an object or an array")]);
    checkParams(parsed.twice.map((pointer) => problem(pointer.slice(7), "occurs twice")));
    const { meta, becket, rest } = splitMeta(params);
    const timeout = readCount(becket["timeout_ms"], Infinity);
    const depth = readCount(becket["depth"], 0);
    let credit = readCount(becket["credit"], Infinity);
    checkLimit(BUSY, "running requests", running + 1, MAX_REQUESTS);
    checkLimit(BUSY, "bytes of requests", running && runningBytes + bytes, MAX_REQUEST_BYTES);
    checkLimit(BUSY, "unread bytes", transport.queued, MAX_QUEUE);
    checkLimit(BUSY, "calls within calls", depth, MAX_DEPTH);

    const controller = new AbortController();
    const { signal } = controller;
    const deadline = performance.now() + timeout;
    let waiting: (() => void)[] = [];
    const run = async (): Promise<string> => {
      try {
        return checkSize(encodeResult(id, await handler(rest, context)));
      } finally {
        running--;
        runningBytes -= bytes;
      }
    };
    const sendEvent = async (name: string, params?: object): Promise<void> => {
      while (credit <= 0 && !signal.aborted) await new Promise<void>((resolve) => waiting.push(resolve));
      signal.throwIfAborted();
      credit--;
      await notify(name, params);
    };
    const grant = (more: number): void => {
      credit += more;
      for (const resolve of waiting) resolve();
      waiting = [];
    };
    const context: Context = {
      method,
      meta,
      signal,
      remaining: () => deadline - performance.now(),
      progress: async (value) => {
        if (has("progress")) await sendEvent("$/progress", { token: parent, value });
      },
      notify: (name, params) =>
        sendEvent(name, peer.features.size ? { _meta: { becket: { parent } }, ...params } : params),
    };
    const callMeta = (): object => ({ parent: requests.has(parent) ? parent : undefined, depth: depth + 1 });
    let timer: NodeJS.Timeout | undefined;
    const aborted = new Promise<never>((_, reject) => {
      const abort = (error: Error): void => {
        controller.abort(error);
        grant(0);
        reject(error);
      };
      const onDeadline = (): void => {
        abort(new RpcError(TIMEOUT, "the deadline has passed"));
      };
      timer = startTimer(onDeadline, timeout);
      if (method !== "shutdown") requests.set(parent, { abort, grant }); // which cancels the others
    });
    running++;
    runningBytes += bytes;
    try {
      return await Promise.race([scopes.run({ ...context, callMeta }, run), aborted]);
    } finally {
      clearTimeout(timer);
      requests.delete(parent);
    }
  };

  /** Returns what the caller may know of an error; the rest is logged under the same incident. */
  const toRpcError = (error: unknown, method: string): RpcError => {
    if (error instanceof RpcError) return error;
    const incident = crypto.randomUUID().slice(24);
    log(`${method} failed, incident ${incident}: ${describe(error)}`);
    return new RpcError(INTERNAL, "internal error", { incident });
  };

  const settleCall = ({ id, error, result }: Members): void => {
    const { code, message, data } = membersOf(error);
    calls.get(id)?.settle(error ? new CallError(Number(code), String(message), data) : undefined, result);
  };

  const receiveNotification = (method: string, params: unknown): void => {
    const { id, n, token, value } = membersOf(params);
    const request = requests.get(id);
    if (method === "$/cancelRequest") request?.abort(cancelled());
    else if (method === "$/credit") request?.grant(readCount(n, 0));
    else if (method === "$/progress") calls.get(token)?.onProgress?.((value ?? null) as Json);
    const listener = listeners.get(method);
    if (!listener) return;
    const handle = async (): Promise<void> => {
      try {
        await listener(splitMeta(params).rest);
      } catch (error) {
        toRpcError(error, method);
      }
    };
    notified = notified.then(handle);
  };

  /** Returns the metadata of params, what is becket's in it, and the params without it. */
  const splitMeta = (params: unknown): { meta: Members; becket: Members; rest: unknown } => {
    const { _meta, ...rest } = membersOf(params);
    const meta = membersOf(_meta);
    const { becket } = meta;
    if (!isObject(becket)) return { meta, becket: {}, rest: params ?? undefined };
    const isAbsent = !Object.keys(rest).length && (becket["no_params"] ?? !has("no_params"));
    return { meta, becket, rest: isAbsent ? undefined : rest };
  };

  const peer: Peer = {
    features: new Set(),
    listeners,
    isBusy: () => requests.size > 0,
    call,
    notify,
    receive,
    reject(error) {
      for (const { abort } of requests.values()) abort(error);
    },
    close() {
      lost ??= new Error("the link has ended");
      peer.reject(cancelled());
      for (const { settle } of calls.values()) settle(lost);
    },
  };
  return peer;
};

/** Returns the error of a request that was cancelled. */
export const cancelled = (): RpcError => new RpcError(CANCELLED, "cancelled");

const invalid = (problem: string): RpcError => new RpcError(INVALID_REQUEST, `invalid request: ${problem}`);

const encodeResult = (id: string, result: unknown): string =>
  `{"jsonrpc":"2.0","id":${id},"result":${encode(result ?? null)}}`;

const encodeError = (id: string, { code, message, data }: RpcError): string =>
  `{"jsonrpc":"2.0","id":${id},"error":${encode({ code, message, data })}}`;

const readCount = (value: unknown, otherwise: number): number =>
  typeof value === "number" && value >= 0 ? value : otherwise;

const checkSize = (body: string): string => {
  checkLimit(TOO_LARGE, "bytes of a message", Buffer.byteLength(body), MAX_FRAME);
  return body;
};

/** Returns the id of a message as it is written: undefined without one, null if it is none. */
const readId = ({ value, id: text, twice }: Parsed): string | undefined | null => {
  const { id } = membersOf(value);
  if (id === undefined) return undefined;
  const isId = id === null || typeof id === "number" || (typeof id === "string" && id.length <= MAX_ID_BYTES);
  return isId && !twice.includes("/id") ? (text ?? encode(id)) : null;
};
