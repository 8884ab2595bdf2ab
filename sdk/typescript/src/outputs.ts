/** The output of commands and providers: each method sends an event, and waits while the host is behind. */

import type { CommandOutputEvent, ProviderEvent, TaskKind } from "./contract.js";
import { RpcError } from "./errors.js";
import type { Context } from "./peer.js";

/** The output of a command. The event that ends it is sent when the command returns. */
export interface CommandOutput {
  /** Sends text for the user, in Markdown. */
  text(content: string): Promise<void>;
  /** Sends a remark that is not part of the output. */
  system(content: string): Promise<void>;
  /** Sends an error; the command may go on. */
  error(content: string): Promise<void>;
  /** Sends a table. */
  table(headers: readonly string[], rows: readonly (readonly string[])[]): Promise<void>;
  /** Runs a function as a task whose progress the host shows. It has failed if the function throws. */
  task<Result>(
    label: string,
    options: { kind?: TaskKind; total?: number },
    run: (task: Task) => Result | Promise<Result>,
  ): Promise<Result>;
  /** Sends an event of any kind. */
  send(event: CommandOutputEvent): Promise<void>;
}

/** A task of a command, with its progress. */
export interface Task {
  /** The id of the task. */
  readonly id: string;
  /** Adds to the completed amount. */
  advance(by?: number, message?: string): Promise<void>;
  /** Sends the progress; values that are left out stay as they are. */
  update(values: { current?: number; total?: number; message?: string | undefined }): Promise<void>;
  /** Sends a log line of the task. */
  log(line: string): Promise<void>;
}

/** The events of a provider. If the host wants the complete response only, they are dropped. */
export interface ProviderStream {
  /** Whether the host wants events; otherwise they need not be produced. */
  readonly isWanted: boolean;
  /** Sends the next piece of the text. */
  text(delta: string): Promise<void>;
  /** Sends the next piece of the model's thinking. */
  thinking(delta: string): Promise<void>;
  /** Sends usage figures under the names of the provider. */
  usage(values: Readonly<Record<string, unknown>>): Promise<void>;
  /** Sends an event of any type: a `tool_use`, an `error`. */
  send(event: ProviderEvent): Promise<void>;
}

/** Returns the output of the run of a command. */
export const createCommandOutput = ({ notify }: Context, requestId: string): CommandOutput => {
  let tasks = 0;
  const send = (event: CommandOutputEvent): Promise<void> => notify("command.output", { request_id: requestId, event });
  const say = (kind: "text" | "system" | "error") => (content: string) => send({ kind, content });
  return {
    send,
    text: say("text"),
    system: say("system"),
    error: say("error"),
    table: (headers, rows) => send({ kind: "table", headers, rows }),
    async task(label, { kind = "generic", total }, run) {
      const id = `${requestId}/${++tasks}`;
      let state = { id, current: 0, total };
      const update: Task["update"] = ({ message, ...values }) =>
        notify("task.update", { ...(state = { ...state, ...values }), message });
      await notify("task.start", { id, label, kind });
      try {
        if (total !== undefined) await update({});
        const result = await run({
          id,
          update,
          advance: (by = 1, message) => update({ current: state.current + by, message }),
          log: (line) => notify("task.log", { id, line }),
        });
        await notify("task.done", { id });
        return result;
      } catch (error) {
        // As in a response, only the text of an RpcError leaves the process.
        const text = error instanceof RpcError ? error.message : "failed";
        await notify("task.done", { id, error: text }).catch(() => undefined);
        throw error;
      }
    },
  };
};

/** Returns the events of a response; without a context they are dropped. */
export const createProviderStream = (context: Context | undefined): ProviderStream => {
  const send = async (event: ProviderEvent): Promise<void> => context?.notify("provider.stream.event", event);
  return {
    isWanted: !!context,
    send,
    text: (delta) => send({ type: "text", delta }),
    thinking: (delta) => send({ type: "thinking", delta }),
    usage: (values) => send({ ...values, type: "usage" }),
  };
};
