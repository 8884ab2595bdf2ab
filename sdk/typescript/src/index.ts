/** A kit for extensions of hosts that speak becket's contract. */

export type * from "./contract.js";
export { Code } from "./contract.js";
export { CallError, RpcError } from "./errors.js";
export type { Problem } from "./errors.js";
export { createExtension } from "./extension.js";
export type { Extension, ExtensionOptions, SettingsEditor, ToolOptions } from "./extension.js";
export type { Config, HostClient, Memory } from "./host.js";
export type { CommandOutput, ProviderStream, Task } from "./outputs.js";
export type { CallOptions, Context, Handler, Peer, Transport } from "./peer.js";
export type { Infer, InputOf, Schema } from "./schema.js";
