/** An extension: what it declares, and how it serves the requests of a host. */
import { FEATURES, INCOMPATIBLE, NOT_READY, PROTOCOL_VERSION } from "./contract.js";
import { RpcError, checkParams, describe, invalidParams, problem } from "./errors.js";
import { createHostClient, writeLog } from "./host.js";
import { encode, isArray, isEqual, membersOf } from "./json.js";
import { createCommandOutput, createProviderStream } from "./outputs.js";
import { cancelled, createPeer } from "./peer.js";
import { findProblems, objectSchema } from "./schema.js";
import { serveStdio } from "./stdio.js";
const string = { type: "string" };
const INITIALIZE = {
    extension_protocol_version: { type: "integer" },
    plugin_id: string,
    config: { type: "object" },
};
const NEW = "not initialized";
const READY = "initialized";
/** Returns an extension that offers nothing yet. */
export const createExtension = ({ id, version, onStart, onStop, capabilities }) => {
    const handlers = new Map();
    const listeners = new Map();
    const offers = new Map(); // tools, commands and providers
    const tools = [];
    const providers = [];
    // On the wire these are subscriptions: functions are left out.
    const hooks = [];
    let state = NEW;
    let params;
    let host;
    let link;
    let stopped;
    const logError = (message) => {
        writeLog(message, "error", id);
    };
    const refuse = () => {
        throw new RpcError(NOT_READY, `${id} is ${state}`);
    };
    const runOnStop = async (run) => {
        await new Promise(setImmediate); // cancelled handlers end first
        try {
            await run?.();
        }
        catch (error) {
            logError(describe(error));
        }
    };
    /** Serves a method whose params have these members, while the extension is ready. */
    const serve = (method, members, run) => {
        handlers.set(method, (given, context) => {
            if (state !== READY)
                refuse();
            checkMembers(members, given);
            return run(given, context);
        });
        return extension;
    };
    /** Serves methods that have the name of what is offered in the member `key` of their params. */
    const offer = (kind, key, name, members, methods, run) => {
        const offered = `${kind} ${name}`;
        if (offers.has(offered))
            throw new Error(`${offered} is declared twice`);
        offers.set(offered, run);
        for (const method of methods) {
            serve(method, { [key]: string, ...members }, (given, context) => {
                const wanted = given[key] ?? "";
                return (offers.get(`${kind} ${wanted}`) ?? refuseName(kind, key, wanted))(given, context);
            });
        }
        return extension;
    };
    const initialize = async (given, peer, transport) => {
        if (state !== NEW)
            refuse();
        const { extension_protocol_version: asked, features } = membersOf(given);
        if (typeof asked === "number" && asked !== PROTOCOL_VERSION) {
            const text = `${id} supports version ${PROTOCOL_VERSION} of the contract, not ${asked}`;
            throw new RpcError(INCOMPATIBLE, text, { supported: [PROTOCOL_VERSION] });
        }
        checkMembers(INITIALIZE, given);
        params = given;
        peer.features = new Set((isArray(features) ? features : []));
        host = createHostClient(peer, transport, params);
        state = "starting";
        try {
            await onStart?.();
        }
        catch (error) {
            state = NEW; // the host may try again
            throw error;
        }
        state = READY;
        // A host that announces no features knows nothing of the rest.
        const ownId = id === params.plugin_id ? undefined : id;
        const more = peer.features.size ? { features: FEATURES, id: ownId } : undefined;
        const declared = { tools, providers, capabilities, hooks: more && hooks };
        return { protocol_version: PROTOCOL_VERSION, capabilities: declared, ...more };
    };
    const extension = {
        get host() {
            return host ?? refuse();
        },
        get config() {
            return (params ?? refuse()).config;
        },
        get root() {
            return (params ?? refuse()).plugin_root;
        },
        tool(name, { input = {}, ...options }, run) {
            const schema = objectSchema(input);
            const defaults = Object.entries(input).map(([key, property]) => [key, property.default]);
            tools.push({ name, input_schema: schema, ...options });
            return offer("tool", "name", name, {}, ["tool.call"], (call, context) => {
                checkParams(findProblems(schema, call.input, "/input"));
                return run({ ...Object.fromEntries(defaults), ...call.input }, context);
            });
        },
        command(name, run) {
            const members = { args: { type: "array", items: string }, request_id: string };
            return offer("command", "command", name, members, ["command.invoke"], async (call, context) => {
                const out = createCommandOutput(context, call.request_id);
                const result = await run(call.args, out, context);
                await out.send({ kind: "done" });
                return result;
            });
        },
        provider(declared, run) {
            providers.push(declared);
            const members = { model_id: string, messages: { type: "array" } };
            const methods = ["provider.complete", "provider.stream"];
            const serveRequest = async (request, context) => {
                const model = request.model_id;
                if (!declared.models.some((each) => each.id === model))
                    refuseName("model", "model_id", model);
                const out = createProviderStream(context.method === methods[1] ? context : undefined);
                const result = await run(request, out, context);
                await out.send({ type: "done" });
                return typeof result === "string" ? { content: [{ type: "text", text: result }] } : result;
            };
            return offer("provider", "provider_id", declared.id, members, methods, serveRequest);
        },
        hook(hook, match, run) {
            hooks.push({ hook, match, run });
            return serve("hook.handle", { kind: string }, async (event, context) => {
                const injected = [];
                for (const { hook, match, run } of hooks) {
                    if (hook !== event.kind || !isMatch(match, event))
                        continue;
                    const result = (await run(event, context));
                    if (result?.action === "inject")
                        injected.push(result.content);
                    else if (result && result.action !== "continue")
                        return result;
                }
                return injected[0] ? { action: "inject", content: injected.join("\n\n") } : { action: "continue" };
            });
        },
        settingsEditor({ open, key, commit }) {
            const show = async ({ category, field }, change) => {
                if (change && "rows" in change)
                    return { category, field, render: change };
                if (change)
                    await host?.notify(`settings.editor.${"value" in change ? "commit" : "close"}`, change);
                return null;
            };
            const members = { category: string, field: string };
            serve("settings.editor.open", members, async (opened) => show(opened, await open(opened)));
            serve("settings.editor.key", members, async (pressed) => show(pressed, await key(pressed)));
            // Never null: hosts would store it.
            const take = async (chosen) => (await commit?.(chosen)) ?? chosen.value;
            return serve("settings.editor.commit", members, take);
        },
        handle: (method, handler) => serve(method, {}, handler),
        on(notification, listener) {
            listeners.set(notification, listener);
            return this;
        },
        run() {
            serveStdio(this, `${id} ${version} is an extension: a host starts it.`);
        },
        connect(transport, onShutdown) {
            const peer = (link = createPeer(transport, handlers, listeners, logError));
            handlers.set("initialize", (given) => initialize(given, peer, transport));
            handlers.set("shutdown", async () => {
                await extension.stop();
                setImmediate(onShutdown); // when the response has been sent
            });
            return peer;
        },
        stop() {
            const run = state === READY ? onStop : undefined;
            state = "stopping";
            link?.reject(cancelled());
            return (stopped ??= runOnStop(run));
        },
    };
    return extension.handle("info.get", () => ({ build: { backend: "cpu", version } }));
};
/** Returns whether all conditions hold for an event. */
const isMatch = ({ tool, input_contains: part = "", input_equals: whole }, event) => {
    const input = event.tool_input ?? null;
    return ([undefined, event.tool_name, event.tool_runtime_name].includes(tool) &&
        encode(input).includes(part) &&
        isEqual(whole ?? input, input));
};
const checkMembers = (properties, given) => {
    const required = Object.keys(properties);
    if (required[0])
        checkParams(findProblems({ type: "object", properties, required }, given));
};
const refuseName = (kind, key, name) => {
    throw invalidParams([problem(`/${key}`, `there is no ${kind} '${name.slice(0, 80)}' here`)]);
};
