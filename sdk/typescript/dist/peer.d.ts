/** A JSON-RPC peer: requests, responses, notifications and batches in both directions. It knows no stream. */
import { type Json } from "./contract.js";
import { RpcError } from "./errors.js";
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
/** Returns a peer with these handlers. `log` gets what must not leave the process: errors of handlers. */
export declare const createPeer: (transport: Transport, handlers: ReadonlyMap<string, Handler>, listeners: Map<string, (params: unknown) => unknown>, log: (message: string) => void) => Peer;
/** Returns the error of a request that was cancelled. */
export declare const cancelled: () => RpcError;
