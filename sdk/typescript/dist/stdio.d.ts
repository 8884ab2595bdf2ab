/** Serves an extension over stdin and stdout: keeps other output off the wire, and ends when the host is gone. */
import type { Peer, Transport } from "./peer.js";
/** What is served. */
interface Servable {
    connect(transport: Transport, onShutdown: () => void): Peer;
    stop(): Promise<void>;
}
/** Serves an extension until its host ends it, then exits. In a terminal it prints the usage instead. */
export declare const serveStdio: (extension: Servable, usage: string) => void;
export {};
