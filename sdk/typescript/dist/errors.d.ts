/** Errors: what a handler throws to respond with one, and what a failed call throws. */
declare class CodedError extends Error {
    /** The code on the wire: one of `Code`, or one of your own. */
    readonly code: number;
    /** What else is known of the error, any JSON. */
    readonly data?: unknown | undefined;
    constructor(
    /** The code on the wire: one of `Code`, or one of your own. */
    code: number, message: string, 
    /** What else is known of the error, any JSON. */
    data?: unknown | undefined);
}
/** Throw it in a handler to respond with this error. */
export declare class RpcError extends CodedError {
}
/**
 * A call of ours has failed: the host responded with this error, the time was over (`Code.TIMEOUT`), or the call was
 * cancelled (`Code.CANCELLED`). If a handler does not catch it, its own caller gets an internal error.
 */
export declare class CallError extends CodedError {
}
/** A problem of a value: the JSON pointer of what is wrong, and why. */
export interface Problem {
    pointer: string;
    message: string;
}
export declare const problem: (pointer: string, message: string) => Problem;
/** Returns the error for params with these problems. */
export declare const invalidParams: (problems: readonly Problem[]) => RpcError;
/** Throws an error if params have problems. */
export declare const checkParams: (problems: readonly Problem[]) => void;
/** Throws an error with this code if there is more of something than its limit. */
export declare const checkLimit: (code: number, what: string, amount: number, limit: number) => void;
/** Returns the text of an error for the log. */
export declare const describe: (error: unknown) => string;
export {};
