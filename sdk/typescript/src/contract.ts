/** The messages of the contract. Generated from schemas/ by `python -m tools.sdk`: do not edit. */
/* eslint @typescript-eslint/consistent-indexed-object-style: "off" -- the name Record is taken */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** Any JSON object. */
export interface JsonObject {
  readonly [member: string]: Json;
}

/** The version of the contract. */
export const PROTOCOL_VERSION = 1;

/** Features of a link, each used only if both peers have announced it. */
export const FEATURES = [
  "cancel",
  "progress",
  "deadline",
  "credit",
  "ping",
  "log",
  "no_params",
] as const;

// Each as a constant of its own, so that a bundler writes the number.
export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const UNKNOWN_METHOD = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL = -32603;
export const CANCELLED = -32800;
export const TIMEOUT = 1001;
export const BUSY = 1002;
export const PERMISSION_DENIED = 1003;
export const TOO_LARGE = 1004;
export const NOT_READY = 1005;
export const QUOTA = 1006;
export const DISK_FULL = 1007;
export const INCOMPATIBLE = 1008;
export const NOT_SUPPORTED = 1009;

/** The codes of errors. */
export const Code = {
  PARSE_ERROR,
  INVALID_REQUEST,
  UNKNOWN_METHOD,
  INVALID_PARAMS,
  INTERNAL,
  CANCELLED,
  TIMEOUT,
  BUSY,
  PERMISSION_DENIED,
  TOO_LARGE,
  NOT_READY,
  QUOTA,
  DISK_FULL,
  INCOMPATIBLE,
  NOT_SUPPORTED,
} as const;

/** Has one response with the same id. */
export interface Request {
  jsonrpc: "2.0";
  id: RequestId;
  /** Names that begin with `rpc.` are reserved by JSON-RPC. */
  method: string;
  params?: Json;
}

/** A call without an id. It has no response, not even an error. */
export interface Notification {
  jsonrpc: "2.0";
  /** Names that begin with `rpc.` are reserved by JSON-RPC. */
  method: string;
  params?: Json;
}

/** The result of the request with this id. The result may be any value, null included. */
export interface Success {
  jsonrpc: "2.0";
  id: RequestId;
  result: Json;
}

/** The request with this id has failed. The id is null when it could not be read from the request. */
export interface Failure {
  jsonrpc: "2.0";
  id: RequestId;
  error: ErrorObject;
}

/** Why a request has failed. */
export interface ErrorObject {
  /** -32768 to -32000 are reserved by JSON-RPC; all others are the application's. */
  code: number;
  /** One short sentence for people. */
  message: string;
  data?: Json;
}

/**
 * Chosen by the sender of the request and returned unchanged: 7 and "7" are different ids. becket sends positive
 * integers; the safe range for all peers is 1 to 2147483647.
 */
export type RequestId = string | number | null;

/** What belongs to one call, in `params._meta.becket`. All members are optional. */
export interface CallMeta {
  /** How long the caller waits, in milliseconds from receipt. */
  timeout_ms?: number;
  /** The id of the request whose handler makes this call, as its sender chose it. */
  parent?: RequestId;
  /** How many calls are nested around this one. */
  depth?: number;
  /** How many events may be sent before the first `$/credit`. */
  credit?: number;
  /** A key of the caller's own, the same in each attempt of one call. */
  idem?: string;
  /** Beside nothing else: true for absent params, false for an empty object. */
  no_params?: boolean;
}

/** Params of `$/cancelRequest`: the request that is not needed any more. It is still answered. */
export interface CancelParams {
  id: RequestId;
}

/** Params of `$/progress`: how far a request is. The token is the id of the request. */
export interface ProgressParams {
  token: RequestId;
  value: Json;
}

/** Params of `$/credit`: so many further events may be sent for this request. */
export interface CreditParams {
  id: RequestId;
  n: number;
}

/** Params of initialize. Who the host is, and what the extension starts with. */
export interface Initialize {
  /** The version of a SynapsCLI that is the host. */
  synaps_version?: string;
  /**
   * The version of this contract: 1. An extension that does not support it responds with the error 1008, whose
   * `data.supported` lists the versions that it supports.
   */
  extension_protocol_version: number;
  /** The id that the host uses for the extension. It is also its namespace in the host's memory. */
  plugin_id: string;
  /** The folder of the extension. */
  plugin_root: string | null;
  /** The configuration of the extension, its secrets included. */
  config: JsonObject;
  /** Which program the host is. */
  host?: HostInfo;
  features?: readonly string[];
}

/** Result of initialize. What the extension declares. */
export interface Initialized {
  /**
   * The version of this contract: that of the params. A host refuses any other. An extension that does not support that
   * version responds with the error 1008, not with a result.
   */
  protocol_version: number;
  capabilities?: Capabilities;
  /** As in the params. Anything but an array of strings counts as none. */
  features?: readonly string[];
  /**
   * The result of `info.get`, for a host that has announced features: it need not call it. An invalid value counts as
   * none.
   */
  info?: ExtensionInfo;
  /**
   * The id in the code of the extension, for a host that has named features, where it is another than `plugin_id`: the
   * host warns of it. Anything but a string counts as none.
   */
  id?: string;
}

/** Which program the host is. */
export interface HostInfo {
  name: string;
  version: string;
}

/**
 * What an extension declares. Members that are not named here are ignored. A host also accepts an empty array for an
 * empty object.
 */
export interface Capabilities {
  /** Needs the permission `tools.register` unless empty. */
  tools?: readonly Tool[];
  /** Needs the permission `providers.register` unless empty. */
  providers?: readonly Provider[];
  capabilities?: readonly DeclaredCapability[];
  /**
   * The hooks that the extension handles; each needs the permission of its kind. Anything but an array counts as none.
   */
  hooks?: readonly HookSubscription[];
}

/** Something that the extension can do, in its own format. The host checks only the permissions. */
export interface DeclaredCapability {
  /** Chosen by the author, for the users of the capability. */
  kind: NonBlankText;
  /** For people. */
  name: NonBlankText;
  /** What the capability needs; each must have been granted. */
  permissions?: readonly Permission[];
  /** Anything that its user should know. */
  params?: Json;
}

/** The name of a permission. */
export type Permission =
  | "audio.input"
  | "audio.output"
  | "config.subscribe"
  | "config.write"
  | "context_providers.register"
  | "memory.read"
  | "memory.write"
  | "privacy.llm_content"
  | "providers.register"
  | "session.drive"
  | "session.lifecycle"
  | "tools.intercept"
  | "tools.register"
  | "tools.transform_output";

/** At most 64 bytes of UTF-8 without colon, white space or control characters. White space around it is ignored. */
export type DeclaredName = string;

/** Something other than white space. */
export type NonBlankText = string;

/**
 * A tool that the extension offers. Its name must be unique in the extension. A model sees it with the extension's id
 * before it, and `_` for each character outside `A-Z a-z 0-9 _ -`.
 */
export interface Tool {
  name: DeclaredName;
  /** What it does, for the model that chooses among tools. */
  description: NonBlankText;
  /** The JSON Schema of the input, which is an object. */
  input_schema: JsonObject;
  /** Whether it changes nothing outside of its process, as its author declares. A hint, not a permission. */
  read_only?: boolean;
  /**
   * The JSON Schema of the result, or of the structured content of a tool of MCP. A host may show it; results are not
   * checked against it.
   */
  output_schema?: JsonObject;
}

/** Params of tool.call. From the host to the extension. Respond within 120 seconds. */
export interface ToolCall {
  /** As the extension has declared it. */
  name: string;
  /** Fits the `input_schema` of the tool if the host validates it; do not rely on it. */
  input: JsonObject;
}

/** A provider of models. The host names its models `plugin:provider:model`. */
export interface Provider {
  /** At most 64 of `a-z 0-9 _ -`, unique in the extension. White space around it is ignored. */
  id: string;
  /** For people. */
  display_name: NonBlankText;
  /** For people. */
  description: NonBlankText;
  /**
   * The JSON Schema of the configuration that the provider needs. The host refuses the extension if a key of its
   * `required` is not configured.
   */
  config_schema?: JsonObject;
  models: readonly Model[];
}

/** A model of a provider. */
export interface Model {
  /** Unique in its provider. */
  id: DeclaredName;
  /** For people. */
  display_name?: string;
  /** What the model can do. Further members are passed on unchanged. */
  capabilities?: ModelCapabilities;
  /** Tokens. */
  context_window?: number;
}

/** What the model can do. Further members are passed on unchanged. */
export interface ModelCapabilities {
  /** Whether `provider.stream` is served for it. */
  streaming?: boolean;
  /** Whether its answers may ask for tools. */
  tool_use?: boolean;
  [member: string]: unknown;
}

/** One turn of a conversation. */
export interface Message {
  role: string;
  /** Text, or content blocks: objects with a `type`. */
  content: MessageContent;
}

/** Text, or content blocks: objects with a `type`. */
export type MessageContent = string | readonly JsonObject[];

/**
 * Params of provider.complete and of provider.stream. From the host to the extension. A host sends all members, null
 * for those without a value.
 */
export interface ProviderRequest {
  provider_id: string;
  model_id: string;
  /** Both ids with that of the extension before them. */
  model: string;
  /** The conversation so far, oldest first. */
  messages: readonly Message[];
  system_prompt?: string | null;
  /** The tools that the model may call, with `name`, `description` and `input_schema`. */
  tools?: readonly JsonObject[];
  temperature?: number | null;
  max_tokens?: number | null;
  /** Tokens; 0 disables thinking. */
  thinking_budget?: number;
}

/** Result of provider.stream. The whole response. `content` may be empty if all of it was sent as events. */
export interface ProviderResult {
  /**
   * Content blocks. Those of the type `text` have a `text`, those of the type `tool_use` an `id`, a `name` and an
   * `input`; the host ignores others.
   */
  content: readonly Json[];
  stop_reason?: string;
  /** What the response has cost, under the provider's own names. */
  usage?: Json;
}

/** One of six, distinguished by `type`. */
export type ProviderEvent = TextDelta | ThinkingDelta | ToolUse | Usage | ProviderFailed | ProviderDone;

/** A further part of the response, in `delta`. A host also reads `text` if there is no `delta`. */
export interface TextDelta {
  type: "text";
  delta: string;
}

/** A further part of the model's thinking, in `delta`. A host also reads `text` if there is no `delta`. */
export interface ThinkingDelta {
  type: "thinking";
  delta: string;
}

/**
 * The model calls a tool. A host shows it and does not run it: only tool calls in the result of `provider.complete` are
 * run.
 */
export interface ToolUse {
  type: "tool_use";
  id: string;
  name: string;
  /** Empty where it is left out. */
  input?: JsonObject;
}

/** What the response has cost so far: all members beside `type`, under the provider's own names. */
export interface Usage {
  type: "usage";
  [member: string]: unknown;
}

/** An error of the provider. It does not end the call. */
export interface ProviderFailed {
  type: "error";
  message: string;
  /** A number or a name; anything else is ignored. */
  code?: ErrorCode;
}

/** No more events will come. It may be left out, and does not end the call. */
export interface ProviderDone {
  type: "done";
}

/** A number or a name; anything else is ignored. */
export type ErrorCode = number | string;

/** Params of command.invoke. From the host to the extension. */
export interface CommandInvoke {
  command: string;
  args: readonly string[];
  /** Chosen by the host, another one for each run. All output of this run carries it. */
  request_id: string;
}

/**
 * Params of command.output. The run that it belongs to, and the event. A host also reads an event whose members are
 * beside the request id.
 */
export interface CommandOutputParams {
  /** That of the `command.invoke`. */
  request_id: string;
  event: CommandOutputEvent;
}

/** One of five, distinguished by `kind`. */
export type CommandOutputEvent = Text | SystemText | ErrorText | Table | CommandDone;

/** For the person who gave the command, in Markdown. */
export interface Text {
  kind: "text";
  content: string;
}

/** A remark beside the output proper. */
export interface SystemText {
  kind: "system";
  content: string;
}

/** Something has gone wrong; the command may go on. */
export interface ErrorText {
  kind: "error";
  content: string;
}

/** Rows of cells under their headers. All cells are strings; rows may be of any length. */
export interface Table {
  kind: "table";
  headers: readonly string[];
  rows: readonly (readonly string[])[];
}

/** No more output will come. It may be left out, and does not end the command: the response does. */
export interface CommandDone {
  kind: "done";
}

/** Params of task.start. A task has begun. A second start with the same id begins it anew. */
export interface TaskStarted {
  id: string;
  /** What is being done, for people. */
  label: string;
  /** `other` means `generic`. A value that is not a string counts as absent, and absent means `generic`. */
  kind?: TaskKind;
}

/**
 * Params of task.update. The progress of a task. A member of a wrong type counts as absent; a task that has not begun
 * is ignored.
 */
export interface TaskUpdated {
  id: string;
  /** A natural number of at most 64 bits. */
  current?: number;
  /** A natural number of at most 64 bits. */
  total?: number;
  /** A string for people. */
  message?: string;
}

/** Params of task.log. A log line of a task. A host shows the last eight lines. */
export interface TaskLogged {
  id: string;
  line: string;
}

/** Params of task.done. A task has ended. */
export interface TaskEnded {
  id: string;
  /** Why it has failed. Null, empty or left out if it has not. */
  error?: string;
}

/** `other` means `generic`. A value that is not a string counts as absent, and absent means `generic`. */
export type TaskKind = "download" | "rebuild" | "generic";

/**
 * Params of hook.handle. From the host to the extension. All nine members are sent each time, null if they do not
 * apply; a missing one means null.
 */
export interface HookEvent {
  kind: HookKind;
  /** Of a tool hook: the name under which a model sees the tool. */
  tool_name?: string | null;
  /** Of a tool hook: the tool's own name, `extension:tool` where it is an extension's. */
  tool_runtime_name?: string | null;
  /** Of a tool hook: what the tool gets or got. */
  tool_input?: Json;
  /**
   * Of `after_tool_call`: the output of the tool. Of more than 32 KiB only the beginning, followed by `…[truncated, N
   * total bytes]`.
   */
  tool_output?: string | null;
  /**
   * Of `before_message` the last text of the user, of `on_message_complete` the response, of `on_compaction` the
   * summary.
   */
  message?: string | null;
  /** Of session hooks the session, of `on_compaction` the new one. A host may send it with all hooks. */
  session_id?: string | null;
  /** Of `on_session_end`: the messages of the session, if they are stored. */
  transcript?: readonly Json[] | null;
  /**
   * Of `on_message_complete`: `content_block_count`, `has_tool_use`. Of `on_compaction`: `old_session_id`,
   * `new_session_id`, `message_count`, `source`.
   */
  data?: Json;
}

/**
 * Tool hooks need `tools.intercept`, `before_message`, `on_message_complete` and `on_compaction` need
 * `privacy.llm_content`, session hooks `session.lifecycle`.
 */
export type HookKind =
  | "before_tool_call"
  | "after_tool_call"
  | "before_message"
  | "on_message_complete"
  | "on_compaction"
  | "on_session_start"
  | "on_session_end";

/**
 * Result of hook.handle. The result. Allowed besides `continue`: for `before_tool_call` `block`, `confirm`, `modify`;
 * for `after_tool_call` `replace`; for `before_message` and `on_session_start` `inject`.
 */
export type HookResult = Continue | Block | Inject | Confirm | Modify | Replace;

/** Go on as without this hook. */
export interface Continue {
  action: "continue";
}

/**
 * Do not run the tool. The reason is shown. After the first result of this kind, of `confirm` or of `modify` no further
 * extension is consulted.
 */
export interface Block {
  action: "block";
  reason: string;
}

/**
 * Put this text before the model, as context of the extension and not as text of the user. Texts of several extensions
 * are joined by a blank line.
 */
export interface Inject {
  action: "inject";
  content: string;
}

/** Prompt the user first: `yes` or `y` allows, anything else blocks, and so does a host without a prompt. */
export interface Confirm {
  action: "confirm";
  message: string;
}

/** Run the tool with this input instead. */
export interface Modify {
  action: "modify";
  input: JsonObject;
}

/**
 * Show the model this output instead, at most 1 MiB of it. Whether the tool has failed stays as it is. Needs
 * `tools.transform_output` besides the permission of the hook.
 */
export interface Replace {
  action: "replace";
  output: string;
}

/**
 * Which events of a kind an extension wants: all conditions must hold. No other members are allowed, since an unknown
 * condition would never hold.
 */
export interface HookMatch {
  /** Of tool hooks only: the name under which a model sees the tool, or its own. */
  tool?: string;
  /** A part of the compact JSON text of the input. */
  input_contains?: string;
  /** The whole input. The order of members does not matter; 1 and 1.0 are different. Null means absent. */
  input_equals?: Json;
}

/**
 * A hook that an extension announces in `capabilities.hooks` of its response to `initialize`, and which of its events
 * it wants; without `match` all.
 */
export interface HookSubscription {
  hook: HookKind;
  match?: HookMatch;
}

/**
 * Params of memory.append. From the extension to the host; needs `memory.write`. A record that is too large, or not in
 * the extension's own namespace, gets the error "invalid params".
 */
export interface Append {
  namespace: Namespace;
  /** At most 16 KiB of UTF-8. */
  content: string;
  /** Null means absent: no tags. */
  tags?: readonly Tag[];
  /** Anything, of at most 64 KiB as compact JSON. Null means absent. */
  meta?: Json;
  /**
   * A key of your own, at most 256 bytes of UTF-8. With one that this namespace has seen, nothing is added and the
   * first result is returned again: send it with each try of the same append.
   */
  idem?: string;
}

/** Result of memory.append. Sent when the record is safe. */
export interface Appended {
  ok: boolean;
  timestamp_ms: number;
  id?: number;
}

/**
 * Params of memory.query. From the extension to the host; needs `memory.read`. All conditions must hold; the newest
 * records come first.
 */
export interface Query {
  namespace: Namespace;
  /** A part of the content; case does not matter. */
  content_contains?: string;
  /** How one of the tags begins. */
  tag_prefix?: string;
  /** The earliest time, itself included. */
  since_ms?: number;
  /** The latest time, itself included. */
  until_ms?: number;
  /** The maximum number of records, 50 by default. There are never more than 1000: query again for older ones. */
  limit?: number;
}

/**
 * Result of memory.query. The records found, newest first. What one message cannot hold is left out: `more` is set
 * then, and `until_ms` finds the rest.
 */
export interface Records {
  records: readonly Record[];
  /** Whether older matching records did not fit into this response. */
  more?: boolean;
}

/** One stored record. `tags` are always there, `meta` only if there is one. */
export interface Record {
  namespace: string;
  timestamp_ms: number;
  content: string;
  tags: readonly string[];
  meta?: Json;
  id?: number;
}

/**
 * The id of the calling extension; it has no other. At most 64 bytes of UTF-8, without `/`, `\`, `..` and white space.
 */
export type Namespace = string;

/** At most 256 bytes of UTF-8. */
export type Tag = string;

/** Params of config.get. From the extension to the host; needs no permission. */
export interface ConfigGet {
  key: ConfigKey;
}

/** Result of config.get. The value and the revision of its last change; null and 0 if there is none. */
export interface ConfigValue {
  value: string | null;
  revision?: number;
}

/** Params of config.set. From the extension to the host; needs `config.write`. */
export interface ConfigSet {
  key: ConfigKey;
  /** At most 16 KiB of UTF-8. */
  value: string;
  /** The value is stored only if this is still the revision of the key; 0 means that there must be no value yet. */
  if_revision?: number;
}

/**
 * Result of config.set. Sent when the value is safe. If `ok` is false, `if_revision` was not the revision of the key:
 * nothing was changed, and `revision` is the current one.
 */
export interface ConfigSaved {
  ok: boolean;
  revision?: number;
}

/** Params of config.subscribe. From the extension to the host; needs `config.subscribe`. */
export interface ConfigSubscribe {
  /** The keys to subscribe to; all if left out. */
  keys?: readonly string[];
  /** The last known revision. Left out if there is none. */
  since?: number;
}

/**
 * Result of config.subscribe. From now on each change is sent once, in order, without a gap: those after `since`, or,
 * with a snapshot, those after `revision`.
 */
export interface ConfigSubscribed {
  ok: boolean;
  /** Of the whole configuration, at the time of the response. */
  revision?: number;
  /**
   * All values of the subscribed keys; they replace the known ones. Sent if `since` was left out, or is so old that the
   * changes since then are no longer stored.
   */
  snapshot?: { readonly [member: string]: string };
}

/** Params of config.changed. A notification from the host to a subscriber. */
export interface ConfigChanged {
  key: string;
  /** Null when it was removed. */
  value: string | null;
  revision: number;
}

/**
 * At most 256 bytes of UTF-8, without dots, slashes, spaces and control characters. White space around it is ignored.
 */
export type ConfigKey = string;

/** Params of settings.editor.open. From the host to the extension: the user has opened this field. */
export interface EditorOpen {
  category: string;
  field: string;
}

/** Params of settings.editor.key. From the host to the extension: the user has pressed a key. */
export interface EditorKey {
  category: string;
  field: string;
  key: string;
}

/**
 * Params of settings.editor.commit, to the extension. From the host to the extension: the user has chosen this value;
 * for a row it is its `data`.
 */
export interface EditorCommit {
  category: string;
  field: string;
  value: Json;
}

/**
 * What to show now. A host also accepts `render` alone, and the members of `render` at the top level; any other result
 * means "nothing new to show".
 */
export interface EditorOpened {
  category: string;
  field: string;
  render?: EditorRender;
}

/**
 * The value to store, what else the host shall do (any JSON that both agree on), and what to show now. A host also
 * accepts a bare value; without one it stores the value that was entered. Never respond with null: some hosts store it
 * as a text.
 */
export interface EditorTaken {
  value: Json;
  intent?: Json;
  render?: EditorRender;
}

/** Params of settings.editor.render. From the extension to the host: the whole content to show now. */
export interface EditorRender {
  rows: readonly EditorRow[];
  /** The index of the marked row; left out if there is none. */
  cursor?: number;
  /** A hint below the rows. */
  footer?: string;
}

/** One line of the editor. */
export interface EditorRow {
  label: string;
  /** A glyph before the label. */
  marker?: string;
  /** Whether the user may choose it. One that is not is dimmed, and the cursor skips it. */
  selectable?: boolean;
  /** The value of the row; the host does not inspect it. */
  data?: Json;
}

/**
 * Params of settings.editor.commit, to the host. From the extension to the host: the user has chosen this value, to be
 * stored; the editor closes.
 */
export interface EditorCommitted {
  value: Json;
}

/** Params of settings.editor.close. From the extension to the host: close the editor without a value. */
export interface EditorClosed {
  /** Shown for a moment. */
  reason?: string;
}

/** Params of widget.upsert. Shows a widget, or changes the one with this id. */
export interface WidgetUpsert {
  id: string;
  lines: readonly string[];
  /** Null means absent. */
  position?: Position;
  title?: string;
  /** Seconds after which it is removed. Left out if it stays until it is dismissed. */
  ttl_secs?: number;
  /** The same lines in colours, each made of parts; shown instead of `lines` if the host can. */
  styled_lines?: readonly (readonly StyledText[])[];
}

/** Params of widget.dismiss. Removes a widget; one that is not there is ignored. */
export interface WidgetDismiss {
  id: string;
}

/** Its position on the screen. */
export type Position =
  | "top_left"
  | "top_center"
  | "top_right"
  | "middle_left"
  | "center"
  | "middle_right"
  | "bottom_left"
  | "bottom_center"
  | "bottom_right";

/** A part of a line and its colours. */
export interface StyledText {
  text: string;
  fg?: string;
  bg?: string;
}

/** Params of $/log. One message. */
export interface LogRecord {
  level: LogLevel;
  /** The part of the extension that it comes from. */
  logger: string;
  message: string;
}

/** From what only an author wants to know to what ends the extension. */
export type LogLevel = "debug" | "info" | "warning" | "error" | "critical";

/** Result of info.get. Every member may be left out. A host ignores what does not fit. */
export interface ExtensionInfo {
  build?: BuildInfo;
  capabilities?: readonly CapabilityInfo[];
  models?: readonly ModelInfo[];
}

/** What the extension runs on. */
export interface BuildInfo {
  backend: string;
  features?: readonly string[];
  version?: string;
}

/** Something that the extension can do, for people to read. */
export interface CapabilityInfo {
  kind: string;
  name: string;
  modes?: readonly string[];
}

/** A model of the extension. */
export interface ModelInfo {
  id: string;
  display_name?: string;
  /** Whether it is there already. */
  installed?: boolean;
}

/** Result of sidecar.spawn_args. How the extension's sidecar is to be started. Every member may be left out. */
export interface SidecarArgs {
  /** Further arguments for its command. */
  args?: readonly string[];
  /** The language it should work in. */
  language?: string;
}

/** What a sidecar reads. */
export type SidecarCommand = SidecarInit | SidecarTrigger | SidecarShutdown;

/** Begin. Further members of `config` are defined by the extension and its sidecar. */
export interface SidecarInit {
  type: "init";
  config: SidecarConfig;
}

/** The sidecar's configuration. Further members are the sidecar's own. */
export interface SidecarConfig {
  protocol_version?: number;
}

/** Something happened. A host sends `press` and `release` for the sidecar's key. */
export interface SidecarTrigger {
  type: "trigger";
  name: string;
  payload?: Json;
}

/** End. */
export interface SidecarShutdown {
  type: "shutdown";
}

/** What a host reads. An unknown type is the sidecar's own, and is ignored. */
export type SidecarEvent = SidecarHello | SidecarStatus | InsertText | SidecarFailed;

/** The first line. A version below 2 is refused. */
export interface SidecarHello {
  type: "hello";
  protocol_version: number;
  extension: string;
  /** Free text. */
  capabilities?: readonly string[];
}

/**
 * What the sidecar is doing, as a word of your own, and what to show for it. `idle`, `ready` and `stopped` are shown as
 * inactive, all others as active.
 */
export interface SidecarStatus {
  type: "status";
  state: string;
  label?: string;
}

/** Text for the user's line of input: a preview, the final text, or in place of what was inserted before. */
export interface InsertText {
  type: "insert_text";
  text: string;
  mode: InsertMode;
}

/** How inserted text is used: as a preview, as the final text, or in place of the text inserted before. */
export type InsertMode = "append" | "final" | "replace";

/** An error for the user. */
export interface SidecarFailed {
  type: "error";
  message: string;
}

/** Requests to the host: params and result of each. */
export interface HostMethods {
  /** Stores a record in the extension's own namespace; responds when it is durable. */
  "memory.append": { params: Append; result: Appended };
  /** Returns records of the extension's own namespace, newest first. */
  "memory.query": { params: Query; result: Records };
  /** Reads a value of the extension's own configuration. */
  "config.get": { params: ConfigGet; result: ConfigValue };
  /** Changes a value of the extension's own configuration; responds when it is durable. */
  "config.set": { params: ConfigSet; result: ConfigSaved };
  /** Subscribes to changes of the extension's own configuration. */
  "config.subscribe": { params: ConfigSubscribe; result: ConfigSubscribed };
}

/** Requests to the extension: params and result of each. */
export interface ExtensionMethods {
  /** Performs the handshake: identifies the host, and returns what the extension declares. */
  "initialize": { params: Initialize; result: Initialized };
  /** Requests the extension to exit. */
  "shutdown": { params: undefined; result: Json };
  /** Runs a tool of the extension. */
  "tool.call": { params: ToolCall; result: Json };
  /** Requests a complete response from a model of the extension. */
  "provider.complete": { params: ProviderRequest; result: ProviderResult };
  /** Requests a streamed response from a model of the extension; its parts arrive as events. */
  "provider.stream": { params: ProviderRequest; result: ProviderResult };
  /** Runs a command of the extension; its output and tasks arrive as events. */
  "command.invoke": { params: CommandInvoke; result: Json };
  /** Consults an extension about something that the host is about to do or has done. */
  "hook.handle": { params: HookEvent; result: HookResult };
  /** Returns the extension's build, capabilities and models. */
  "info.get": { params: undefined; result: ExtensionInfo };
  /** Returns how to start the extension's sidecar. */
  "sidecar.spawn_args": { params: undefined; result: SidecarArgs };
  /** Opens the extension's own editor of a field. */
  "settings.editor.open": { params: EditorOpen; result: Json };
  /** Forwards a key that was pressed in an open editor. */
  "settings.editor.key": { params: EditorKey; result: Json };
  /** Sends the extension the value that the user chose. */
  "settings.editor.commit": { params: EditorCommit; result: Json };
}

/** Notifications to the host: params of each. */
export interface HostNotifications {
  /** One event of a streamed response. */
  "provider.stream.event": ProviderEvent;
  /** One output event of a running command. */
  "command.output": CommandOutputParams;
  /** A task has started. */
  "task.start": TaskStarted;
  /** The progress of a task. */
  "task.update": TaskUpdated;
  /** A log line of a task. */
  "task.log": TaskLogged;
  /** A task has ended. */
  "task.done": TaskEnded;
  /** Shows new content in the open editor. */
  "settings.editor.render": EditorRender;
  /** Commits the value that was chosen in the open editor, and closes it. */
  "settings.editor.commit": EditorCommitted;
  /** Closes the open editor without a value. */
  "settings.editor.close": EditorClosed;
  /** Shows a widget, or changes one that is shown. */
  "widget.upsert": WidgetUpsert;
  /** Removes a widget. */
  "widget.dismiss": WidgetDismiss;
  /** A message for the host's log. */
  "$/log": LogRecord;
}

/** Notifications to the extension: params of each. */
export interface ExtensionNotifications {
  /** A subscribed value has changed. */
  "config.changed": ConfigChanged;
}
