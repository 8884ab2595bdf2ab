/** The output of commands and providers: each method sends an event, and waits while the host is behind. */
import type { CommandOutputEvent, ProviderEvent, TaskKind } from "./contract.js";
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
    task<Result>(label: string, options: {
        kind?: TaskKind;
        total?: number;
    }, run: (task: Task) => Result | Promise<Result>): Promise<Result>;
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
    update(values: {
        current?: number;
        total?: number;
        message?: string | undefined;
    }): Promise<void>;
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
export declare const createCommandOutput: ({ notify }: Context, requestId: string) => CommandOutput;
/** Returns the events of a response; without a context they are dropped. */
export declare const createProviderStream: (context: Context | undefined) => ProviderStream;
