/** An extension: what it declares, and how it serves the requests of a host. */

import type {
  CommandInvoke,
  DeclaredCapability,
  EditorClosed,
  EditorCommit,
  EditorCommitted,
  EditorKey,
  EditorOpen,
  EditorRender,
  HookEvent,
  HookKind,
  HookMatch,
  HookResult,
  Initialize,
  Json,
  Provider,
  ProviderRequest,
  ProviderResult,
  ToolCall,
} from "./contract.js";
import { FEATURES, INCOMPATIBLE, NOT_READY, PROTOCOL_VERSION } from "./contract.js";
import { RpcError, checkParams, describe, invalidParams, problem } from "./errors.js";
import { type HostClient, createHostClient, writeLog } from "./host.js";
import { encode, isArray, isEqual, membersOf } from "./json.js";
import { type CommandOutput, type ProviderStream, createCommandOutput, createProviderStream } from "./outputs.js";
import { type Context, type Handler, type Peer, type Transport, cancelled, createPeer } from "./peer.js";
import { type InputOf, type Schema, findProblems, objectSchema } from "./schema.js";
import { serveStdio } from "./stdio.js";

type Awaitable<T> = T | Promise<T>;
type EditorChange = EditorRender | EditorCommitted | EditorClosed | undefined;

/** What an extension is, and the functions that are optional. */
export interface ExtensionOptions {
  /** The id of the extension, as in its manifest. */
  id: string;
  /** The version of the extension. */
  version: string;
  /** Runs when the host has sent `initialize`, before the response: an error fails the start. */
  onStart?: () => unknown;
  /** Runs once at the end, for a few seconds at most. */
  onStop?: () => unknown;
  /** Capabilities with names of your own, for hosts that know them. */
  capabilities?: readonly DeclaredCapability[];
}

/** A tool: its description for the model, and its input. */
export interface ToolOptions<P> {
  description: string;
  /** The inputs by name, each with its JSON Schema. One without a `default` is required. */
  input?: P;
  /** The JSON Schema of the result. */
  output_schema?: Schema;
  /** Whether the tool changes nothing outside of its process. */
  read_only?: boolean;
}

/** What a settings editor does with the requests of the host. Nothing returned means: nothing has changed. */
export interface SettingsEditor {
  /** The user opened a field. */
  open: (opened: EditorOpen) => Awaitable<EditorChange>;
  /** The user pressed a key. Returns rows, a value that the host stores, or a reason to close without one. */
  key: (pressed: EditorKey) => Awaitable<EditorChange>;
  /** The user chose a value, such as the `data` of a row. Returns the value to store; by default, the same. */
  commit?: (chosen: EditorCommit) => Awaitable<Json | undefined>;
}

/** A program that a host starts and calls. Declare what it offers, then call `run`. */
export interface Extension {
  /** The host, from `onStart` on. */
  readonly host: HostClient;
  /** The configuration at the start, with values of any type. */
  readonly config: Readonly<Record<string, Json>>;
  /** The folder of the extension, null if it has none. */
  readonly root: string | null;
  /** Declares a tool. Inputs that do not fit are rejected before `run` is called; defaults are filled in. */
  tool<const P extends Properties = Properties>(
    name: string,
    options: ToolOptions<P>,
    run: (input: InputOf<P>, context: Context) => unknown,
  ): this;
  /** Declares a command. What `run` returns is the result of the command, null by default. */
  command(name: string, run: (args: readonly string[], out: CommandOutput, context: Context) => unknown): this;
  /** Declares a provider of models. `run` sends pieces to `out`, and returns the complete result or its text. */
  provider(
    declared: Provider,
    run: (request: ProviderRequest, out: ProviderStream, context: Context) => Awaitable<ProviderResult | string>,
  ): this;
  /**
   * Declares a hook for the events that match: all conditions must hold, and none means every event of the kind. In the
   * text of an input, numbers are as JavaScript writes them: 1.0 is `1`. Nothing returned means `continue`.
   */
  hook(
    kind: HookKind,
    match: HookMatch,
    run: (event: HookEvent, context: Context) => Awaitable<HookResult | undefined>,
  ): this;
  /** Sets the editor of the fields that the manifest declares with `editor = "custom"`. */
  settingsEditor(editor: SettingsEditor): this;
  /** Serves a method of your own, for hosts that know it. */
  handle(method: string, handler: Handler): this;
  /** Serves a notification of your own. */
  on(notification: string, listener: (params: unknown) => unknown): this;
  /** Serves the host that started this program, over stdin and stdout, and exits when the host ends it. */
  run(): void;
  /** Serves a host over a transport; `onShutdown` is called when the host has sent `shutdown`. */
  connect(transport: Transport, onShutdown: () => void): Peer;
  /** Rejects further requests, and runs `onStop` once. */
  stop(): Promise<void>;
}

type Properties = Readonly<Record<string, Schema>>;
type Serve<Params> = (params: Params, context: Context) => unknown;

const string = { type: "string" } as const;
const INITIALIZE: Properties = {
  extension_protocol_version: { type: "integer" },
  plugin_id: string,
  config: { type: "object" },
};
const NEW = "not initialized";
const READY = "initialized";

/** Returns an extension that offers nothing yet. */
export const createExtension = ({ id, version, onStart, onStop, capabilities }: ExtensionOptions): Extension => {
  const handlers = new Map<string, Handler>();
  const listeners = new Map<string, (params: unknown) => unknown>();
  const offers = new Map<string, Serve<never>>(); // tools, commands and providers
  const tools: object[] = [];
  const providers: Provider[] = [];
  // On the wire these are subscriptions: functions are left out.
  const hooks: { hook: HookKind; match: HookMatch; run: Serve<HookEvent> }[] = [];
  let state = NEW;
  let params: Initialize | undefined;
  let host: HostClient | undefined;
  let link: Peer | undefined;
  let stopped: Promise<void> | undefined;
  const logError = (message: string): void => {
    writeLog(message, "error", id);
  };
  const refuse = (): never => {
    throw new RpcError(NOT_READY, `${id} is ${state}`);
  };

  const runOnStop = async (run: ExtensionOptions["onStop"]): Promise<void> => {
    await new Promise(setImmediate); // cancelled handlers end first
    try {
      await run?.();
    } catch (error) {
      logError(describe(error));
    }
  };

  /** Serves a method whose params have these members, while the extension is ready. */
  const serve = <Params>(method: string, members: Properties, run: Serve<Params>): Extension => {
    handlers.set(method, (given, context) => {
      if (state !== READY) refuse();
      checkMembers(members, given);
      return run(given as Params, context);
    });
    return extension;
  };

  /** Serves methods that have the name of what is offered in the member `key` of their params. */
  const offer = <Params>(
    kind: string,
    key: string,
    name: string,
    members: Properties,
    methods: readonly string[],
    run: Serve<Params>,
  ): Extension => {
    const offered = `${kind} ${name}`;
    if (offers.has(offered)) throw new Error(`${offered} is declared twice`);
    offers.set(offered, run);
    for (const method of methods) {
      serve(method, { [key]: string, ...members }, (given: Record<string, string>, context) => {
        const wanted = given[key] ?? "";
        return (offers.get(`${kind} ${wanted}`) ?? refuseName(kind, key, wanted))(given as never, context);
      });
    }
    return extension;
  };

  const initialize = async (given: unknown, peer: Peer, transport: Transport): Promise<unknown> => {
    if (state !== NEW) refuse();
    const { extension_protocol_version: asked, features } = membersOf(given);
    if (typeof asked === "number" && asked !== PROTOCOL_VERSION) {
      const text = `${id} supports version ${PROTOCOL_VERSION} of the contract, not ${asked}`;
      throw new RpcError(INCOMPATIBLE, text, { supported: [PROTOCOL_VERSION] });
    }
    checkMembers(INITIALIZE, given);
    params = given as Initialize;
    peer.features = new Set((isArray(features) ? features : []) as string[]);
    host = createHostClient(peer, transport, params);
    state = "starting";
    try {
      await onStart?.();
    } catch (error) {
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

  const extension: Extension = {
    get host() {
      return host ?? refuse();
    },
    get config() {
      return (params ?? refuse()).config;
    },
    get root() {
      return (params ?? refuse()).plugin_root;
    },

    tool(name, { input = {} as never, ...options }, run) {
      const schema = objectSchema(input);
      const defaults = Object.entries(input).map(([key, property]) => [key, property.default]);
      tools.push({ name, input_schema: schema, ...options });
      return offer("tool", "name", name, {}, ["tool.call"], (call: ToolCall, context) => {
        checkParams(findProblems(schema, call.input, "/input"));
        return run({ ...Object.fromEntries(defaults), ...(call.input as object) } as never, context);
      });
    },

    command(name, run) {
      const members = { args: { type: "array", items: string }, request_id: string } as const;
      return offer("command", "command", name, members, ["command.invoke"], async (call: CommandInvoke, context) => {
        const out = createCommandOutput(context, call.request_id);
        const result = await run(call.args, out, context);
        await out.send({ kind: "done" });
        return result;
      });
    },

    provider(declared, run) {
      providers.push(declared);
      const members = { model_id: string, messages: { type: "array" } } as const;
      const methods = ["provider.complete", "provider.stream"];
      const serveRequest: Serve<ProviderRequest> = async (request, context) => {
        const model = request.model_id;
        if (!declared.models.some((each) => each.id === model)) refuseName("model", "model_id", model);
        const out = createProviderStream(context.method === methods[1] ? context : undefined);
        const result = await run(request, out, context);
        await out.send({ type: "done" });
        return typeof result === "string" ? { content: [{ type: "text", text: result }] } : result;
      };
      return offer("provider", "provider_id", declared.id, members, methods, serveRequest);
    },

    hook(hook, match, run) {
      hooks.push({ hook, match, run });
      return serve("hook.handle", { kind: string }, async (event: HookEvent, context) => {
        const injected: string[] = [];
        for (const { hook, match, run } of hooks) {
          if (hook !== event.kind || !isMatch(match, event)) continue;
          const result = (await run(event, context)) as HookResult | undefined;
          if (result?.action === "inject") injected.push(result.content);
          else if (result && result.action !== "continue") return result;
        }
        return injected[0] ? { action: "inject", content: injected.join("\n\n") } : { action: "continue" };
      });
    },

    settingsEditor({ open, key, commit }) {
      const show = async ({ category, field }: EditorOpen, change: EditorChange): Promise<unknown> => {
        if (change && "rows" in change) return { category, field, render: change };
        if (change) await host?.notify(`settings.editor.${"value" in change ? "commit" : "close"}`, change);
        return null;
      };
      const members = { category: string, field: string };
      serve("settings.editor.open", members, async (opened: EditorOpen) => show(opened, await open(opened)));
      serve("settings.editor.key", members, async (pressed: EditorKey) => show(pressed, await key(pressed)));
      // Never null: hosts would store it.
      const take = async (chosen: EditorCommit): Promise<Json> => (await commit?.(chosen)) ?? chosen.value;
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
const isMatch = ({ tool, input_contains: part = "", input_equals: whole }: HookMatch, event: HookEvent): boolean => {
  const input = event.tool_input ?? null;
  return (
    [undefined, event.tool_name, event.tool_runtime_name].includes(tool) &&
    encode(input).includes(part) &&
    isEqual(whole ?? input, input)
  );
};

const checkMembers = (properties: Properties, given: unknown): void => {
  const required = Object.keys(properties);
  if (required[0]) checkParams(findProblems({ type: "object", properties, required }, given));
};

const refuseName = (kind: string, key: string, name: string): never => {
  throw invalidParams([problem(`/${key}`, `there is no ${kind} '${name.slice(0, 80)}' here`)]);
};
