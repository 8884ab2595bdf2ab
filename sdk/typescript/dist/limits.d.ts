/** Bounds of a link, as a host of becket has them. */
/** Bytes of the largest body that is sent or accepted. */
export declare const MAX_FRAME = 4194304;
/** Requests that run at once for the host; the next gets the error "busy". */
export declare const MAX_REQUESTS = 256;
/** Bytes of the bodies of running requests together. */
export declare const MAX_REQUEST_BYTES = 16777216;
/** Messages in a batch. */
export declare const MAX_BATCH = 50;
/** Bytes of an id that is a string. */
export declare const MAX_ID_BYTES = 256;
/** Calls within calls: host to extension to host and so on. */
export declare const MAX_DEPTH = 32;
/** Bytes that the host has not read; beyond it, requests get the error "busy", and log lines go to stderr. */
export declare const MAX_QUEUE = 8388608;
/** Bytes that the host has not read; above it events and notifications wait. */
export declare const HIGH_QUEUE = 262144;
/** Milliseconds that a call waits for its response. */
export declare const CALL_TIMEOUT = 60000;
/** Milliseconds for requests that run at the end of stdin. */
export declare const FINISH_GRACE = 1000;
/** Milliseconds for `onStop`. A little later the thread that reads stdin, or the host, kills the process. */
export declare const STOP_GRACE = 2500;
/** Milliseconds that a timer can wait. */
export declare const MAX_TIMER = 2147483647;
