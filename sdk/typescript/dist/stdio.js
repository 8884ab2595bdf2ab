/** Serves an extension over stdin and stdout: keeps other output off the wire, and ends when the host is gone. */
import { closeSync, constants, openSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { EXIT_PROTOCOL_ERROR, EXIT_STOPPED, EXIT_STOP_TIMEOUT, EXIT_USAGE } from "./exit-codes.js";
import { createFrameDecoder } from "./framing.js";
import { FINISH_GRACE, STOP_GRACE } from "./limits.js";
/** Serves an extension until its host ends it, then exits. In a terminal it prints the usage instead. */
export const serveStdio = (extension, usage) => {
    if (process.stdin.isTTY) {
        console.log(usage);
        process.exitCode = EXIT_USAGE;
        return;
    }
    const shared = new Int32Array(new SharedArrayBuffer(8));
    const source = `(${String(runThread)})(require,${String(createFrameDecoder)})`;
    const thread = new Worker(source, { eval: true, workerData: [shared, takeStdout()] });
    let waiting = [];
    const transport = {
        get queued() {
            return Atomics.load(shared, 0);
        },
        send(body) {
            Atomics.add(shared, 0, Buffer.byteLength(body));
            thread.postMessage(body);
        },
        async drained() {
            Atomics.store(shared, 1, 1);
            if (this.queued)
                await new Promise((resolve) => waiting.push(resolve));
        },
    };
    const peer = extension.connect(transport, () => void end(EXIT_STOPPED));
    let isEnding = false;
    const end = async (code) => {
        if (isEnding)
            return;
        isEnding = true;
        setTimeout(() => process.exit(EXIT_STOP_TIMEOUT), STOP_GRACE);
        await extension.stop();
        peer.close();
        await transport.drained();
        process.exit(code);
    };
    thread.on("message", ([reason, ...bodies]) => {
        for (const resolve of waiting)
            resolve();
        waiting = [];
        for (const body of bodies)
            void peer.receive(body);
        if (reason) {
            console.error(reason);
            void end(EXIT_PROTOCOL_ERROR);
        }
        else if (reason === "") {
            setTimeout(() => void end(EXIT_STOPPED), peer.isBusy() ? FINISH_GRACE : 0);
        }
    });
    for (const name of ["SIGTERM", "SIGINT"])
        process.once(name, () => void end(EXIT_STOPPED));
};
/**
 * Returns a descriptor for the wire, and makes stdout another stderr: for this program, and for those that it starts.
 * Where the system cannot do that, only what JavaScript prints goes to stderr.
 */
const takeStdout = () => {
    try {
        const open = (fd) => openSync(`/dev/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
        const wire = open(1);
        closeSync(open(2)); // before stdout is given up: does it work?
        closeSync(1);
        open(2); // gets the lowest free number, which is that of stdout
        return wire;
    }
    catch {
        process.stdout.write = process.stderr.write.bind(process.stderr);
        return 1;
    }
};
/**
 * Reads stdin and writes the wire in a thread of its own, so that a handler which computes for long delays neither
 * pings nor the end.
 *
 * It runs from its source text, so it refers to nothing outside of itself.
 */
const runThread = (load, createDecoder) => {
    const { parentPort, workerData: [shared, wire] } = load("node:worker_threads");
    const fs = load("node:fs");
    const { Socket } = load("node:net");
    const { isUtf8 } = load("node:buffer");
    const decode = createDecoder();
    const post = (...received) => {
        parentPort.postMessage(received);
    };
    const finish = () => {
        post("");
        // For a handler that computes and does not stop. A thread cannot exit for its process.
        setTimeout(() => process.kill(process.pid, "SIGKILL"), 3_000);
    };
    /** Opens a pipe or a socket, or else a file or /dev/null. */
    const open = (options, openFile) => {
        let stream;
        try {
            stream = new Socket(options);
        }
        catch {
            stream = openFile("", options);
        }
        return stream.on("error", finish);
    };
    const stdout = open({ fd: wire, readable: false }, fs.createWriteStream);
    const stdin = open({ fd: 0, writable: false }, fs.createReadStream);
    const write = (body) => {
        const size = Buffer.byteLength(body);
        stdout.write(`Content-Length: ${size}\r\n\r\n${body}`, () => {
            if (Atomics.sub(shared, 0, size) === size && Atomics.exchange(shared, 1, 0))
                post(undefined);
        });
    };
    const isPing = (body) => {
        const id = /^{"jsonrpc": ?"2.0", ?"id": ?(\d+|"[^"\\]*"), ?"method": ?"\$\/ping"/.exec(body ?? "")?.[1];
        if (!id)
            return false;
        const response = `{"jsonrpc":"2.0","id":${id},"result":null}`;
        Atomics.add(shared, 0, Buffer.byteLength(response));
        write(response);
        return true;
    };
    parentPort.on("message", write);
    stdin.on("end", finish).on("data", (chunk) => {
        const bodies = [];
        let end;
        try {
            for (const body of decode(chunk)) {
                const text = isUtf8(body) ? String(body) : undefined;
                if (!isPing(text))
                    bodies.push(text);
            }
        }
        catch (error) {
            end = String(error);
        }
        post(end, ...bodies);
    });
};
