/** What a host offers its extensions: memory, configuration, the log, and any other method. */
import { describe } from "./errors.js";
import { MAX_QUEUE } from "./limits.js";
/** Returns a client of the host at the other end of a link, which sent these params of `initialize`. */
export const createHostClient = (peer, transport, params) => {
    const extensionId = params.plugin_id;
    const call = peer.call;
    const read = (key) => call("config.get", { key });
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
                peer.listeners.set("config.changed", (change) => onChange(change));
                return call("config.subscribe", options);
            },
        },
        log(message, level = "info", logger = extensionId) {
            const text = describe(message);
            if (!peer.features.has("log") || transport.queued > MAX_QUEUE)
                writeLog(text, level, logger);
            else
                void peer.notify("$/log", { level, logger, message: text });
        },
    };
};
/** Writes lines to stderr in the form that hosts recognise. */
export const writeLog = (message, level, logger) => {
    console.error(message.replace(/^/gm, `${level.toUpperCase()}:${logger}:`));
};
