/** The messages of the contract. Generated from schemas/ by `python -m tools.sdk`: do not edit. */
/* eslint @typescript-eslint/consistent-indexed-object-style: "off" -- the name Record is taken */
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
];
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
};
