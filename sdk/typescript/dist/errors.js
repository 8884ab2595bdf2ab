/** Errors: what a handler throws to respond with one, and what a failed call throws. */
import { INVALID_PARAMS } from "./contract.js";
class CodedError extends Error {
    constructor(
    /** The code on the wire: one of `Code`, or one of your own. */
    code, message, 
    /** What else is known of the error, any JSON. */
    data) {
        super(message);
        this.code = code;
        this.data = data;
    }
}
/** Throw it in a handler to respond with this error. */
export class RpcError extends CodedError {
}
/**
 * A call of ours has failed: the host responded with this error, the time was over (`Code.TIMEOUT`), or the call was
 * cancelled (`Code.CANCELLED`). If a handler does not catch it, its own caller gets an internal error.
 */
export class CallError extends CodedError {
}
export const problem = (pointer, message) => ({ pointer, message });
/** Returns the error for params with these problems. */
export const invalidParams = (problems) => {
    const shown = problems.map(({ pointer, message }) => `${pointer || "/"}: ${message}`).join("; ");
    return new RpcError(INVALID_PARAMS, `invalid params: ${shown}`, { problems });
};
/** Throws an error if params have problems. */
export const checkParams = (problems) => {
    if (problems[0])
        throw invalidParams(problems);
};
/** Throws an error with this code if there is more of something than its limit. */
export const checkLimit = (code, what, amount, limit) => {
    if (amount > limit)
        throw new RpcError(code, `${what}: ${amount}, the limit is ${limit}`);
};
/** Returns the text of an error for the log. */
export const describe = (error) => String(error?.stack ?? error);
