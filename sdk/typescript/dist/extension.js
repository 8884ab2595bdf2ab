/** An extension: what it declares, and how it serves the requests of a host. */
import { Code, FEATURES, PROTOCOL_VERSION } from "./contract.js";
import { RpcError, checkParams, describe, invalidParams } from "./errors.js";
import { createHostClient, writeLog } from "./host.js";
import { membersOf } from "./json.js";
import { createCommandOutput, createProviderStream } from "./outputs.js";
import { createPeer } from "./peer.js";
import { findProblems, objectSchema } from "./schema.js";
import { serveStdio } from "./stdio.js";
const string = { type: "string" };
const NEW = "not ready";
const READY = "ready";
/** Returns an extension that offers nothing yet. */
export function createExtension(options) {
    const { id, version, onStart, onStop, capabilities } = options;
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
    let stopped;
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
        tool(name, { input, ...options }, run) {
            const properties = input ?? {};
            const schema = objectSchema(properties);
            const defaults = Object.entries(properties).map(([key, property]) => [key, property.default]);
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
                    const tools = [undefined, event.tool_name, event.tool_runtime_name];
                    if (hook !== event.kind || !tools.includes(match.tool))
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
            const peer = createPeer(transport, handlers, listeners, logError);
            handlers.set("initialize", (given) => initialize(given, peer, transport));
            handlers.set("shutdown", async () => {
                await extension.stop();
                setImmediate(onShutdown); // when the response has been sent
            });
            return peer;
        },
        stop() {
            stopped ??= runOnStop(state === READY ? onStop : undefined);
            state = "ending";
            return stopped;
        },
    };
    return extension.handle("info.get", () => ({ build: { backend: "cpu", version } }));
    function name() {
        return params?.plugin_id ?? id;
    }
    function logError(message) {
        writeLog(message, "error", name());
    }
    function refuse() {
        throw new RpcError(Code.NOT_READY, `${name()} is ${state}`);
    }
    async function runOnStop(run) {
        try {
            await run?.();
        }
        catch (error) {
            logError(describe(error));
        }
    }
    /** Serves a method whose params have these members, while the extension is ready. */
    function serve(method, members, run) {
        handlers.set(method, (given, context) => {
            if (state !== READY)
                refuse();
            checkMembers(members, given);
            return run(given, context);
        });
        return extension;
    }
    /** Serves methods that have the name of what is offered in the member `key` of their params. */
    function offer(kind, key, name, members, methods, run) {
        offers.set(`${kind} ${name}`, run);
        for (const method of methods) {
            serve(method, { [key]: string, ...members }, (given, context) => {
                const wanted = given[key] ?? "";
                return (offers.get(`${kind} ${wanted}`) ?? refuseName(kind, key, wanted))(given, context);
            });
        }
        return extension;
    }
    async function initialize(given, peer, transport) {
        if (state !== NEW)
            refuse();
        const { extension_protocol_version: asked, features } = membersOf(given);
        if (typeof asked === "number" && asked !== PROTOCOL_VERSION) {
            const text = `version ${PROTOCOL_VERSION} is supported, not ${asked}`;
            throw new RpcError(Code.INCOMPATIBLE, text, { supported: [PROTOCOL_VERSION] });
        }
        const version = { type: "integer" };
        checkMembers({ extension_protocol_version: version, plugin_id: string, config: { type: "object" } }, given);
        params = given;
        peer.features = new Set(Array.isArray(features) ? features : []);
        host = createHostClient(peer, () => transport.queued, params.plugin_id, params.host ?? undefined);
        state = "starting";
        try {
            await onStart?.();
        }
        catch (error) {
            state = NEW; // the host may try again
            throw error;
        }
        state = READY;
        const known = { tools, providers, capabilities };
        return peer.features.size > 0
            ? { protocol_version: PROTOCOL_VERSION, capabilities: { ...known, hooks }, features: FEATURES, id }
            : { protocol_version: PROTOCOL_VERSION, capabilities: known }; // a host that announces none knows no more
    }
}
function checkMembers(properties, given) {
    const required = Object.keys(properties);
    if (required[0])
        checkParams(findProblems({ type: "object", properties, required }, given));
}
function refuseName(kind, key, name) {
    throw invalidParams([{ pointer: `/${key}`, message: `there is no ${kind} '${name.slice(0, 80)}' here` }]);
}
