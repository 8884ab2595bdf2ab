/** A JSON-RPC peer: requests, responses, notifications and batches in both directions. It knows no stream. */

import { AsyncLocalStorage } from "node:async_hooks";

import { Code, type Json } from "./contract.js";
import { CallError, RpcError, checkParams, describe } from "./errors.js";
import { type Parsed, encode, isObject, membersOf, parseJson } from "./json.js";
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
  /** Resolves when the remote peer has read what was sent. */
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
  /** Gets the progress that the remote peer reports. */
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
  /** Calls a method of the remote peer. Throws a `CallError` if it fails. */
  readonly call: (method: string, params?: object, options?: CallOptions) => Promise<Json>;
  /** Sends a notification. Waits while the remote peer is behind with reading. */
  readonly notify: (method: string, params?: object) => Promise<void>;
  /** Handles the body of a frame, undefined if it was not UTF-8. */
  readonly receive: (body: string | undefined) => void;
  /** Ends the link: pending calls fail, and the signals of running requests are aborted. */
  readonly close: () => void;
}

type Members = Record<string, unknown>;
type Respond = (response: string) => void;

/** The request that a handler serves, for the calls that it makes. */
interface Scope {
  context: Context;
  meta: () => object;
}

interface Call {
  onProgress: CallOptions["onProgress"];
  settle: (error?: Error, result?: unknown) => void;
}

interface Request {
  interrupt: (error: Error) => void;
  grant: (credit: number) => void;
}

const scopes = new AsyncLocalStorage<Scope>();

/** Returns a peer with these handlers. `log` gets what must not leave the process: errors of handlers. */
export function createPeer(
  transport: Transport,
  handlers: ReadonlyMap<string, Handler>,
  listeners: Map<string, (params: unknown) => unknown>,
  log: (message: string) => void,
): Peer {
  const calls = new Map<unknown, Call>();
  const requests = new Map<string, Request>();
  let running = 0; // handlers that have not ended, also those of requests that were cancelled
  let runningBytes = 0;
  let notified = Promise.resolve();
  let lastId = 0;
  let lost: Error | undefined;

  const peer: Peer = {
    features: new Set(),
    listeners,
    isBusy: () => requests.size > 0,
    call,
    notify,
    receive,
    close() {
      lost ??= new Error("link ended");
      for (const request of requests.values()) request.interrupt(lost);
      for (const { settle } of calls.values()) settle(lost);
    },
  };
  return peer;

  function has(feature: string): boolean {
    return peer.features.has(feature);
  }

  // -- out

  function encodeMessage(message: object): string {
    if (lost) throw lost;
    return checkSize(encode({ jsonrpc: "2.0", ...message }));
  }

  async function notify(method: string, params?: object): Promise<void> {
    transport.send(encodeMessage({ method, params }));
    if (transport.queued > HIGH_QUEUE) await transport.drained();
  }

  async function call(method: string, params?: object, options: CallOptions = {}): Promise<Json> {
    const { timeout = CALL_TIMEOUT, signal, onProgress } = options;
    const scope = scopes.getStore();
    const limit = Math.min(timeout, scope?.context.remaining() ?? Infinity);
    const id = ++lastId;
    const body = encodeMessage({ id, method, params: withMeta(params, limit, scope) });
    // A handler that was cancelled may still call, to tidy up: such a call is not cancelled with it.
    const outer = scope?.context.signal;
    const signals = [signal, outer?.aborted ? undefined : outer];
    return new Promise((resolve, reject) => {
      const abandon = (code: number, text: string): void => {
        settle(new CallError(code, `${method}: ${text}`));
        if (has("cancel")) void notify("$/cancelRequest", { id });
      };
      const onAbort = (): void => {
        abandon(Code.CANCELLED, "cancelled");
      };
      const timer = setTimeout(abandon, Math.min(timeout, MAX_TIMER), Code.TIMEOUT, "timeout").unref();
      const settle: Call["settle"] = (error, result) => {
        clearTimeout(timer);
        calls.delete(id);
        for (const each of signals) each?.removeEventListener("abort", onAbort);
        if (error) reject(error);
        else resolve(result as Json);
      };
      calls.set(id, { onProgress, settle });
      for (const each of signals) each?.addEventListener("abort", onAbort);
      transport.send(body);
      if (signal?.aborted) onAbort();
    });
  }

  function withMeta(params: object | undefined, limit: number, scope: Scope | undefined): object | undefined {
    if (!has("deadline") || Array.isArray(params)) return params;
    const becket = {
      timeout_ms: Math.max(1, Math.round(limit)), // infinity is written as null, which means the same
      ...scope?.meta(),
      no_params: has("no_params") && !Object.keys(params ?? {}).length ? !params : undefined,
    };
    return { _meta: { becket }, ...params };
  }

  // -- in

  function receive(body: string | undefined): void {
    let parsed: Parsed;
    try {
      parsed = parseJson(body ?? "");
    } catch {
      respond(encodeError("null", new RpcError(Code.PARSE_ERROR, "parse error")));
      return;
    }
    if (Array.isArray(parsed.value)) receiveBatch(parsed.elements);
    else receiveMessage(parsed, body?.length ?? 0, respond);
  }

  function respond(response: string): void {
    if (!lost) transport.send(response);
  }

  function receiveBatch(elements: string[]): void {
    if (!elements[0] || elements.length > MAX_BATCH) {
      respond(encodeError("null", elements[0] ? tooLarge() : invalid("empty")));
      return;
    }
    const responses: string[] = [];
    let missing = 1;
    const finish = (response?: string): void => {
      if (response) responses.push(response);
      if (--missing || !responses[0]) return;
      try {
        respond(checkSize(`[${responses.join()}]`));
      } catch (error) {
        respond(encodeError("null", error as RpcError)); // it fails the whole batch
      }
    };
    for (const text of elements) {
      missing++;
      if (!receiveMessage(parseJson(text), text.length, finish)) finish();
    }
    finish();
  }

  /** Returns whether `respond` has been or will be called. */
  function receiveMessage(parsed: Parsed, bytes: number, respond: Respond): boolean {
    const { value, duplicates } = parsed;
    const message = membersOf(value);
    const { jsonrpc, method, params } = message;
    const id = readId(parsed);
    if (!method && ("result" in message || "error" in message)) {
      settleCall(message);
      return false;
    }
    const isUsed = requests.has(id ?? "");
    try {
      const isTwice = duplicates.some((pointer) => !pointer.lastIndexOf("/")); // in the envelope
      if (id === null || isUsed) throw invalid("its id");
      if (isTwice || jsonrpc !== "2.0" || !method || typeof method !== "string") throw invalid("its members");
      if (id === undefined) {
        receiveNotification(method, params);
        return false;
      }
      if (method === "$/ping") respond(encodeResult(id, null));
      else receiveRequest(id, method, parsed, bytes, respond);
    } catch (error) {
      respond(encodeError(isUsed ? "null" : (id ?? "null"), toRpcError(error, String(method))));
    }
    return true;
  }

  function receiveRequest(id: string, method: string, parsed: Parsed, bytes: number, respond: Respond): void {
    const { id: parent, params } = parsed.value as Members;
    const handler = handlers.get(method);
    if (!handler) throw new RpcError(Code.UNKNOWN_METHOD, `unknown method: ${method.slice(0, 80)}`);
    if (params && typeof params !== "object") checkParams([{ pointer: "", message: "not an object or an array" }]);
    checkParams(parsed.duplicates.map((pointer) => ({ pointer: pointer.slice(7), message: "occurs twice" })));
    const { meta, becket, rest } = splitMeta(params ?? undefined);
    const timeout = readCount(becket["timeout_ms"], Infinity);
    const depth = readCount(becket["depth"], 0);
    let credit = readCount(becket["credit"], Infinity);
    const isFull = running >= MAX_REQUESTS || (running && runningBytes + bytes > MAX_REQUEST_BYTES);
    if (isFull || transport.queued > MAX_QUEUE || depth > MAX_DEPTH) throw new RpcError(Code.BUSY, "busy");

    const controller = new AbortController();
    const { signal } = controller;
    const deadline = performance.now() + timeout;
    let isOpen = true;
    let waiting: (() => void)[] = [];
    const timer = setTimeout(interrupt, Math.min(timeout, MAX_TIMER), new RpcError(Code.TIMEOUT, "timeout")).unref();
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
    requests.set(id, { interrupt, grant });
    running++;
    runningBytes += bytes;
    const scope = { context, meta: () => ({ parent: isOpen ? parent : undefined, depth: depth + 1 }) };
    void scopes.run(scope, run);

    async function run(): Promise<void> {
      try {
        finish(checkSize(encodeResult(id, await handler?.(rest, context))));
      } catch (error) {
        if (isOpen) finish(encodeError(id, toRpcError(error, method)));
      }
      running--;
      runningBytes -= bytes;
    }

    async function sendEvent(name: string, params?: object): Promise<void> {
      while (credit <= 0 && !signal.aborted) await new Promise<void>((resolve) => waiting.push(resolve));
      if (signal.aborted) throw new RpcError(Code.CANCELLED, "cancelled");
      credit--;
      await notify(name, params);
    }

    function grant(more: number): void {
      credit += more;
      for (const resolve of waiting) resolve();
      waiting = [];
    }

    function interrupt(error: Error): void {
      finish(encodeError(id, error as RpcError));
      controller.abort(error);
      grant(0);
    }

    function finish(response: string): void {
      clearTimeout(timer);
      if (isOpen) respond(response);
      isOpen = false;
      requests.delete(id);
    }
  }

  /** Returns what the caller may know of an error; the rest is logged under the same incident. */
  function toRpcError(error: unknown, method: string): RpcError {
    if (error instanceof RpcError) return error;
    const incident = crypto.randomUUID().slice(24);
    log(`${method} failed, incident ${incident}: ${describe(error)}`);
    return new RpcError(Code.INTERNAL, "internal error", { incident });
  }

  function settleCall({ id, error, result }: Members): void {
    const { code, message, data } = membersOf(error);
    calls.get(id)?.settle(error ? new CallError(Number(code), String(message), data) : undefined, result);
  }

  function receiveNotification(method: string, params: unknown): void {
    const { id, n, token, value } = membersOf(params);
    const request = requests.get(encode(id));
    if (method === "$/cancelRequest") request?.interrupt(new RpcError(Code.CANCELLED, "cancelled"));
    else if (method === "$/credit") request?.grant(Math.max(0, Number(n) || 0));
    else if (method === "$/progress") calls.get(token)?.onProgress?.((value ?? null) as Json);
    const listener = listeners.get(method);
    if (!listener) return;
    const handle = async (): Promise<void> => {
      try {
        await listener(splitMeta(params ?? undefined).rest);
      } catch (error) {
        toRpcError(error, method);
      }
    };
    notified = notified.then(handle);
  }

  /** Returns the metadata of params, what is becket's in it, and the params without it. */
  function splitMeta(params: unknown): { meta: Members; becket: Members; rest: unknown } {
    const { _meta, ...rest } = membersOf(params);
    const meta = membersOf(_meta);
    const { becket } = meta;
    if (!isObject(becket)) return { meta, becket: {}, rest: params };
    const isAbsent = !Object.keys(rest).length && (becket["no_params"] ?? !has("no_params"));
    return { meta, becket, rest: isAbsent ? undefined : rest };
  }
}

function readCount(value: unknown, otherwise: number): number {
  return typeof value === "number" && value >= 0 ? value : otherwise;
}

function invalid(problem: string): RpcError {
  return new RpcError(Code.INVALID_REQUEST, `invalid request: ${problem}`);
}

function tooLarge(): RpcError {
  return new RpcError(Code.TOO_LARGE, "too large");
}

function checkSize(body: string): string {
  if (Buffer.byteLength(body) > MAX_FRAME) throw tooLarge();
  return body;
}

function encodeResult(id: string, result: unknown): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${encode(result ?? null)}}`;
}

function encodeError(id: string, { code, message, data }: RpcError): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${encode({ code, message, data })}}`;
}

/** Returns the id of a message as it is written: undefined without one, null if it is none. */
function readId({ value, id: text, duplicates }: Parsed): string | undefined | null {
  const { id } = membersOf(value);
  if (id === undefined) return undefined;
  const isId = id === null || typeof id === "number" || (typeof id === "string" && id.length <= MAX_ID_BYTES);
  if (!isId || duplicates.includes("/id")) return null;
  return typeof id === "number" ? (text ?? encode(id)) : encode(id);
}
