/** Bounds of a link, as a host of becket has them. */
/** Bytes of the largest body that is sent or accepted. */
export const MAX_FRAME = 4_194_304;
/** Requests that run at once for the host; the next gets the error "busy". */
export const MAX_REQUESTS = 256;
/** Bytes of the bodies of running requests together. */
export const MAX_REQUEST_BYTES = 16_777_216;
/** Messages in a batch. */
export const MAX_BATCH = 50;
/** Bytes of an id that is a string. */
export const MAX_ID_BYTES = 256;
/** Calls within calls: host to extension to host and so on. */
export const MAX_DEPTH = 32;
/** Bytes that the host has not read; beyond it, requests get the error "busy", and log lines go to stderr. */
export const MAX_QUEUE = 8_388_608;
/** Bytes that the host has not read; above it events and notifications wait. */
export const HIGH_QUEUE = 262_144;
/** Milliseconds that a call waits for its response. */
export const CALL_TIMEOUT = 60_000;
/** Milliseconds for requests that run at the end of stdin. */
export const FINISH_GRACE = 1_000;
/** Milliseconds for `onStop`. A little later the thread that reads stdin, or the host, kills the process. */
export const STOP_GRACE = 2_500;
/** Milliseconds that a timer can wait. */
export const MAX_TIMER = 2_147_483_647;
