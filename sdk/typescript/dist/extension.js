/** An extension: what it declares, and how it serves the requests of a host. */
import { Code, FEATURES, PROTOCOL_VERSION } from "./contract.js";
import { RpcError, checkParams, describe, invalidParams } from "./errors.js";
import { createHostClient, writeLog } from "./host.js";
import { membersOf } from "./json.js";
import { createCommandOutput, createProviderStream } from "./outputs.js";
import { createPeer } from "./peer.js";
import { findProblems, objectSchema } from "./schema.js";
import { serveStdio } from "./stdio.js";
const NEW = "the host has not said initialize yet";
const READY = "it has been initialized already";
/** Returns an extension that offers nothing yet. */
export function createExtension(options) {
    const { id, version, onStart, onStop, info, sidecarArgs, capabilities } = options;
    const handlers = new Map();
    const listeners = new Map();
    const offers = new Map(); // tools, commands and providers
    const tools = [];
    const providers = [];
    const hooks = [];
    const own = { build: { backend: "cpu", version } };
    let state = NEW;
    let params;
    let host;
    let stopped;
    const extension = {
        get host() {
            return host ?? refuse();
        },
        get config() {
            return params?.config ?? refuse();
        },
        get root() {
            return (params ?? refuse()).plugin_root;
        },
        tool(name, { input, ...options }, run) {
            const schema = objectSchema(input ?? {});
            const defaults = Object.entries(input ?? {}).map(([key, property]) => [key, property.default]);
            tools.push({ name, input_schema: schema, ...options });
            return offer("tool", "name", name, {}, ["tool.call"], (call, context) => {
                checkParams(findProblems(schema, call.input ?? null, "/input"));
                return run({ ...Object.fromEntries(defaults), ...call.input }, context);
            });
        },
        command(name, run) {
            const members = { args: "array", request_id: "string" };
            return offer("command", "command", name, members, ["command.invoke"], async (call, context) => {
                const out = createCommandOutput(context, call.request_id);
                const result = await run(call.args, out, context);
                await out.send({ kind: "done" });
                return result;
            });
        },
        provider(declared, run) {
            providers.push(declared);
            const members = { model_id: "string", messages: "array" };
            const methods = ["provider.complete", "provider.stream"];
            return offer("provider", "provider_id", declared.id, members, methods, async (request, context) => {
                const model = request.model_id;
                if (!declared.models.some((each) => each.id === model))
                    refuseName("model", "model_id", model);
                const out = createProviderStream(context.method === methods[1] ? context : undefined);
                const result = await run(request, out, context);
                await out.send({ type: "done" });
                return typeof result === "string" ? { content: [{ type: "text", text: result }] } : result;
            });
        },
        hook(hook, match, run) {
            hooks.push({ hook, match, run });
            return serve("hook.handle", { kind: "string" }, async (event, context) => {
                let content = "";
                for (const { hook, match, run } of hooks) {
                    const isOther = match.tool && match.tool !== event.tool_name && match.tool !== event.tool_runtime_name;
                    if (hook !== event.kind || isOther)
                        continue;
                    const result = (await run(event, context));
                    if (result?.action === "inject")
                        content += (content && "\n\n") + result.content;
                    else if (result && result.action !== "continue")
                        return result;
                }
                return content ? { action: "inject", content } : { action: "continue" };
            });
        },
        settingsEditor({ open, key, commit }) {
            const show = async ({ category, field }, change) => {
                if (change && "rows" in change)
                    return { category, field, render: change };
                if (change && "commit" in change)
                    await host?.notify("settings.editor.commit", { value: change.commit });
                else if (change)
                    await host?.notify("settings.editor.close", { reason: change.close });
                return null;
            };
            const members = { category: "string", field: "string" };
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
            serveStdio(this, `${id} ${version} is an extension of a host. It offers: ${[...offers.keys()].join()}`);
        },
        connect(transport, onShutdown) {
            const peer = createPeer(transport, handlers, listeners, (message) => {
                writeLog(message, "error", name());
            });
            handlers.set("initialize", (given) => initialize(given, peer, transport));
            handlers.set("shutdown", async () => {
                await extension.stop();
                setImmediate(onShutdown); // when the response has been sent
            });
            return peer;
        },
        stop() {
            stopped ??= state === READY ? runOnStop() : Promise.resolve();
            state = "it is ending";
            return stopped;
        },
    };
    serve("info.get", {}, info ?? (() => own));
    if (sidecarArgs)
        serve("sidecar.spawn_args", {}, sidecarArgs);
    return extension;
    function name() {
        return params?.plugin_id ?? id;
    }
    function refuse() {
        throw new RpcError(Code.NOT_READY, `${name()} is not ready: ${state}`);
    }
    async function runOnStop() {
        try {
            await onStop?.();
        }
        catch (error) {
            writeLog(`onStop failed: ${describe(error)}`, "error", name());
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
            serve(method, { [key]: "string", ...members }, (given, context) => {
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
        if (Number.isInteger(asked) && asked !== PROTOCOL_VERSION) {
            const text = `${id} speaks version ${PROTOCOL_VERSION} of the extension protocol, not ${String(asked)}`;
            throw new RpcError(Code.INCOMPATIBLE, text, { supported: [PROTOCOL_VERSION] });
        }
        checkMembers({ extension_protocol_version: "integer", plugin_id: "string", config: "object" }, given);
        params = given;
        const announced = Array.isArray(features) ? features : [];
        peer.features = new Set(FEATURES.filter((feature) => announced.includes(feature)));
        host = createHostClient(peer, () => transport.queued, params.plugin_id, params.host ?? undefined);
        state = "it is starting";
        try {
            await onStart?.();
        }
        catch (error) {
            state = NEW; // the host may try again
            throw error;
        }
        state = READY;
        const subscriptions = announced[0] && hooks.map(({ hook, match }) => ({ hook, match }));
        return {
            protocol_version: PROTOCOL_VERSION,
            capabilities: { tools, providers, capabilities, hooks: subscriptions },
            // A host that announces no features knows only the two above.
            ...(announced[0] !== undefined && {
                features: FEATURES,
                info: info ? undefined : own, // one of the author's may take long or fail: the host asks for it
                id: id === params.plugin_id ? undefined : id,
            }),
        };
    }
}
function checkMembers(members, given) {
    const required = Object.keys(members);
    const properties = Object.fromEntries(Object.entries(members).map(([key, type]) => [key, { type }]));
    if (required[0])
        checkParams(findProblems({ type: "object", properties, required }, given ?? null));
}
function refuseName(kind, key, name) {
    throw invalidParams([{ pointer: `/${key}`, message: `there is no ${kind} '${name.slice(0, 80)}' here` }]);
}
