/** The exit codes of a program that serves stdin and stdout. */
/** The host has ended it. */
export declare const EXIT_STOPPED = 0;
/** It was started by hand: there is no host. */
export declare const EXIT_USAGE = 2;
/** What came in on stdin was no frame. */
export declare const EXIT_PROTOCOL_ERROR = 3;
/** Its end took too long. */
export declare const EXIT_STOP_TIMEOUT = 4;
