/** The output of commands and providers: each method sends an event, and waits while the host is behind. */
import { RpcError } from "./errors.js";
/** Returns the output of the run of a command. */
export const createCommandOutput = ({ notify }, requestId) => {
    let tasks = 0;
    const send = (event) => notify("command.output", { request_id: requestId, event });
    const say = (kind) => (content) => send({ kind, content });
    return {
        send,
        text: say("text"),
        system: say("system"),
        error: say("error"),
        table: (headers, rows) => send({ kind: "table", headers, rows }),
        async task(label, { kind = "generic", total }, run) {
            const id = `${requestId}/${++tasks}`;
            let state = { id, current: 0, total };
            const update = ({ message, ...values }) => notify("task.update", { ...(state = { ...state, ...values }), message });
            await notify("task.start", { id, label, kind });
            try {
                if (total !== undefined)
                    await update({});
                const result = await run({
                    id,
                    update,
                    advance: (by = 1, message) => update({ current: state.current + by, message }),
                    log: (line) => notify("task.log", { id, line }),
                });
                await notify("task.done", { id });
                return result;
            }
            catch (error) {
                // As in a response, only the text of an RpcError leaves the process.
                const text = error instanceof RpcError ? error.message : "failed";
                await notify("task.done", { id, error: text }).catch(() => undefined);
                throw error;
            }
        },
    };
};
/** Returns the events of a response; without a context they are dropped. */
export const createProviderStream = (context) => {
    const send = async (event) => context?.notify("provider.stream.event", event);
    return {
        isWanted: !!context,
        send,
        text: (delta) => send({ type: "text", delta }),
        thinking: (delta) => send({ type: "thinking", delta }),
        usage: (values) => send({ ...values, type: "usage" }),
    };
};
