/** A JSON-RPC peer: requests, responses, notifications and batches in both directions. It knows no stream. */
import { AsyncLocalStorage } from "node:async_hooks";
import { Code } from "./contract.js";
import { CallError, RpcError, checkParams, describe } from "./errors.js";
import { encode, isObject, membersOf, parseJson } from "./json.js";
import { CALL_TIMEOUT, HIGH_QUEUE, MAX_BATCH, MAX_DEPTH, MAX_FRAME, MAX_ID_BYTES, MAX_QUEUE, MAX_REQUESTS, MAX_REQUEST_BYTES, MAX_TIMER, } from "./limits.js";
const scopes = new AsyncLocalStorage();
/** Returns a peer with these handlers. `log` gets what must not leave the process: errors of handlers. */
export function createPeer(transport, handlers, listeners, log) {
    const calls = new Map();
    const requests = new Map();
    let running = 0; // handlers that have not ended, also those of requests that were cancelled
    let runningBytes = 0;
    let notified = Promise.resolve();
    let lastId = 0;
    let lost;
    const peer = {
        features: new Set(),
        listeners,
        isBusy: () => requests.size > 0,
        call,
        notify,
        receive,
        close() {
            lost ??= new Error("link ended");
            for (const request of requests.values())
                request.interrupt(lost);
            for (const { settle } of calls.values())
                settle(lost);
        },
    };
    return peer;
    function has(feature) {
        return peer.features.has(feature);
    }
    // -- out
    function encodeMessage(message) {
        if (lost)
            throw lost;
        return checkSize(encode({ jsonrpc: "2.0", ...message }));
    }
    async function notify(method, params) {
        transport.send(encodeMessage({ method, params }));
        if (transport.queued > HIGH_QUEUE)
            await transport.drained();
    }
    async function call(method, params, options = {}) {
        const { timeout = CALL_TIMEOUT, signal, onProgress } = options;
        const scope = scopes.getStore();
        const limit = Math.min(timeout, scope?.context.remaining() ?? Infinity);
        const id = ++lastId;
        const body = encodeMessage({ id, method, params: withMeta(params, limit, scope) });
        // A handler that was cancelled may still call, to tidy up: such a call is not cancelled with it.
        const outer = scope?.context.signal;
        const signals = [signal, outer?.aborted ? undefined : outer];
        return new Promise((resolve, reject) => {
            const abandon = (code, text) => {
                settle(new CallError(code, `${method}: ${text}`));
                if (has("cancel"))
                    void notify("$/cancelRequest", { id });
            };
            const onAbort = () => {
                abandon(Code.CANCELLED, "cancelled");
            };
            const timer = setTimeout(abandon, Math.min(timeout, MAX_TIMER), Code.TIMEOUT, "timeout").unref();
            const settle = (error, result) => {
                clearTimeout(timer);
                calls.delete(id);
                for (const each of signals)
                    each?.removeEventListener("abort", onAbort);
                if (error)
                    reject(error);
                else
                    resolve(result);
            };
            calls.set(id, { onProgress, settle });
            for (const each of signals)
                each?.addEventListener("abort", onAbort);
            transport.send(body);
            if (signal?.aborted)
                onAbort();
        });
    }
    function withMeta(params, limit, scope) {
        if (!has("deadline") || Array.isArray(params))
            return params;
        const becket = {
            timeout_ms: Math.max(1, Math.round(limit)), // infinity is written as null, which means the same
            ...scope?.meta(),
            no_params: has("no_params") && !Object.keys(params ?? {}).length ? !params : undefined,
        };
        return { _meta: { becket }, ...params };
    }
    // -- in
    function receive(body) {
        let parsed;
        try {
            parsed = parseJson(body ?? "");
        }
        catch {
            respond(encodeError("null", new RpcError(Code.PARSE_ERROR, "parse error")));
            return;
        }
        if (Array.isArray(parsed.value))
            receiveBatch(parsed.elements);
        else
            receiveMessage(parsed, body?.length ?? 0, respond);
    }
    function respond(response) {
        if (!lost)
            transport.send(response);
    }
    function receiveBatch(elements) {
        if (!elements[0] || elements.length > MAX_BATCH) {
            respond(encodeError("null", elements[0] ? tooLarge() : invalid("empty")));
            return;
        }
        const responses = [];
        let missing = 1;
        const finish = (response) => {
            if (response)
                responses.push(response);
            if (--missing || !responses[0])
                return;
            try {
                respond(checkSize(`[${responses.join()}]`));
            }
            catch (error) {
                respond(encodeError("null", error)); // it fails the whole batch
            }
        };
        for (const text of elements) {
            missing++;
            if (!receiveMessage(parseJson(text), text.length, finish))
                finish();
        }
        finish();
    }
    /** Returns whether `respond` has been or will be called. */
    function receiveMessage(parsed, bytes, respond) {
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
            if (id === null || isUsed)
                throw invalid("its id");
            if (isTwice || jsonrpc !== "2.0" || !method || typeof method !== "string")
                throw invalid("its members");
            if (id === undefined) {
                receiveNotification(method, params);
                return false;
            }
            if (method === "$/ping")
                respond(encodeResult(id, null));
            else
                receiveRequest(id, method, parsed, bytes, respond);
        }
        catch (error) {
            respond(encodeError(isUsed ? "null" : (id ?? "null"), toRpcError(error, String(method))));
        }
        return true;
    }
    function receiveRequest(id, method, parsed, bytes, respond) {
        const { id: parent, params } = parsed.value;
        const handler = handlers.get(method);
        if (!handler)
            throw new RpcError(Code.UNKNOWN_METHOD, `unknown method: ${method.slice(0, 80)}`);
        if (params && typeof params !== "object")
            checkParams([{ pointer: "", message: "not an object or an array" }]);
        checkParams(parsed.duplicates.map((pointer) => ({ pointer: pointer.slice(7), message: "occurs twice" })));
        const { meta, becket, rest } = splitMeta(params ?? undefined);
        const timeout = readCount(becket["timeout_ms"], Infinity);
        const depth = readCount(becket["depth"], 0);
        let credit = readCount(becket["credit"], Infinity);
        const isFull = running >= MAX_REQUESTS || (running && runningBytes + bytes > MAX_REQUEST_BYTES);
        if (isFull || transport.queued > MAX_QUEUE || depth > MAX_DEPTH)
            throw new RpcError(Code.BUSY, "busy");
        const controller = new AbortController();
        const { signal } = controller;
        const deadline = performance.now() + timeout;
        let isOpen = true;
        let waiting = [];
        const timer = setTimeout(interrupt, Math.min(timeout, MAX_TIMER), new RpcError(Code.TIMEOUT, "timeout")).unref();
        const context = {
            method,
            meta,
            signal,
            remaining: () => deadline - performance.now(),
            progress: async (value) => {
                if (has("progress"))
                    await sendEvent("$/progress", { token: parent, value });
            },
            notify: (name, params) => sendEvent(name, peer.features.size ? { _meta: { becket: { parent } }, ...params } : params),
        };
        requests.set(id, { interrupt, grant });
        running++;
        runningBytes += bytes;
        const scope = { context, meta: () => ({ parent: isOpen ? parent : undefined, depth: depth + 1 }) };
        void scopes.run(scope, run);
        async function run() {
            try {
                finish(checkSize(encodeResult(id, await handler?.(rest, context))));
            }
            catch (error) {
                if (isOpen)
                    finish(encodeError(id, toRpcError(error, method)));
            }
            running--;
            runningBytes -= bytes;
        }
        async function sendEvent(name, params) {
            while (credit <= 0 && !signal.aborted)
                await new Promise((resolve) => waiting.push(resolve));
            if (signal.aborted)
                throw new RpcError(Code.CANCELLED, "cancelled");
            credit--;
            await notify(name, params);
        }
        function grant(more) {
            credit += more;
            for (const resolve of waiting)
                resolve();
            waiting = [];
        }
        function interrupt(error) {
            finish(encodeError(id, error));
            controller.abort(error);
            grant(0);
        }
        function finish(response) {
            clearTimeout(timer);
            if (isOpen)
                respond(response);
            isOpen = false;
            requests.delete(id);
        }
    }
    /** Returns what the caller may know of an error; the rest is logged under the same incident. */
    function toRpcError(error, method) {
        if (error instanceof RpcError)
            return error;
        const incident = crypto.randomUUID().slice(24);
        log(`${method} failed, incident ${incident}: ${describe(error)}`);
        return new RpcError(Code.INTERNAL, "internal error", { incident });
    }
    function settleCall({ id, error, result }) {
        const { code, message, data } = membersOf(error);
        calls.get(id)?.settle(error ? new CallError(Number(code), String(message), data) : undefined, result);
    }
    function receiveNotification(method, params) {
        const { id, n, token, value } = membersOf(params);
        const request = requests.get(encode(id));
        if (method === "$/cancelRequest")
            request?.interrupt(new RpcError(Code.CANCELLED, "cancelled"));
        else if (method === "$/credit")
            request?.grant(Math.max(0, Number(n) || 0));
        else if (method === "$/progress")
            calls.get(token)?.onProgress?.((value ?? null));
        const listener = listeners.get(method);
        if (!listener)
            return;
        const handle = async () => {
            try {
                await listener(splitMeta(params ?? undefined).rest);
            }
            catch (error) {
                toRpcError(error, method);
            }
        };
        notified = notified.then(handle);
    }
    /** Returns the metadata of params, what is becket's in it, and the params without it. */
    function splitMeta(params) {
        const { _meta, ...rest } = membersOf(params);
        const meta = membersOf(_meta);
        const { becket } = meta;
        if (!isObject(becket))
            return { meta, becket: {}, rest: params };
        const isAbsent = !Object.keys(rest).length && (becket["no_params"] ?? !has("no_params"));
        return { meta, becket, rest: isAbsent ? undefined : rest };
    }
}
function readCount(value, otherwise) {
    return typeof value === "number" && value >= 0 ? value : otherwise;
}
function invalid(problem) {
    return new RpcError(Code.INVALID_REQUEST, `invalid request: ${problem}`);
}
function tooLarge() {
    return new RpcError(Code.TOO_LARGE, "too large");
}
function checkSize(body) {
    if (Buffer.byteLength(body) > MAX_FRAME)
        throw tooLarge();
    return body;
}
function encodeResult(id, result) {
    return `{"jsonrpc":"2.0","id":${id},"result":${encode(result ?? null)}}`;
}
function encodeError(id, { code, message, data }) {
    return `{"jsonrpc":"2.0","id":${id},"error":${encode({ code, message, data })}}`;
}
/** Returns the id of a message as it is written: undefined without one, null if it is none. */
function readId({ value, id: text, duplicates }) {
    const { id } = membersOf(value);
    if (id === undefined)
        return undefined;
    const isId = id === null || typeof id === "number" || (typeof id === "string" && id.length <= MAX_ID_BYTES);
    if (!isId || duplicates.includes("/id"))
        return null;
    return typeof id === "number" ? (text ?? encode(id)) : encode(id);
}
