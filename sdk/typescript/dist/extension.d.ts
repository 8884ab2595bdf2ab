/** An extension: what it declares, and how it serves the requests of a host. */
import type { DeclaredCapability, EditorClosed, EditorCommit, EditorCommitted, EditorKey, EditorOpen, EditorRender, HookEvent, HookKind, HookMatch, HookResult, Json, Provider, ProviderRequest, ProviderResult } from "./contract.js";
import { type HostClient } from "./host.js";
import { type CommandOutput, type ProviderStream } from "./outputs.js";
import { type Context, type Handler, type Peer, type Transport } from "./peer.js";
import { type InputOf, type Schema } from "./schema.js";
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
    tool<const P extends Properties = Properties>(name: string, options: ToolOptions<P>, run: (input: InputOf<P>, context: Context) => unknown): this;
    /** Declares a command. What `run` returns is the result of the command, null by default. */
    command(name: string, run: (args: readonly string[], out: CommandOutput, context: Context) => unknown): this;
    /** Declares a provider of models. `run` sends pieces to `out`, and returns the complete result or its text. */
    provider(declared: Provider, run: (request: ProviderRequest, out: ProviderStream, context: Context) => Awaitable<ProviderResult | string>): this;
    /**
     * Declares a hook for the events that match: all conditions must hold, and none means every event of the kind. In the
     * text of an input, numbers are as JavaScript writes them: 1.0 is `1`. Nothing returned means `continue`.
     */
    hook(kind: HookKind, match: HookMatch, run: (event: HookEvent, context: Context) => Awaitable<HookResult | undefined>): this;
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
/** Returns an extension that offers nothing yet. */
export declare const createExtension: ({ id, version, onStart, onStop, capabilities }: ExtensionOptions) => Extension;
export {};
