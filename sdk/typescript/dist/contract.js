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
/** The codes of errors. */
export const Code = {
    PARSE_ERROR: -32700,
    INVALID_REQUEST: -32600,
    UNKNOWN_METHOD: -32601,
    INVALID_PARAMS: -32602,
    INTERNAL: -32603,
    CANCELLED: -32800,
    TIMEOUT: 1001,
    BUSY: 1002,
    PERMISSION_DENIED: 1003,
    TOO_LARGE: 1004,
    NOT_READY: 1005,
    QUOTA: 1006,
    DISK_FULL: 1007,
    INCOMPATIBLE: 1008,
    NOT_SUPPORTED: 1009,
};
