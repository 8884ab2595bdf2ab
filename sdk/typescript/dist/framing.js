/** Frames with a `Content-Length`: bytes to bodies. No I/O. */
/**
 * Returns a function that splits bytes into the bodies of frames: it yields those that are complete with its chunk. It
 * throws if the bytes are no frames: the link cannot go on.
 *
 * A thread runs the source text of this function, so it refers to nothing outside of itself.
 */
export const createFrameDecoder = (limit = 4_194_304) => {
    const others = /((?!content-length:|content-type:.*charset=(?!"?utf-?8))[\w-]+:.*\r\n){0,15}/.source;
    const header = new RegExp(String.raw `^${others}content-length:[ \t]*(\d{1,10})[ \t]*\r\n${others}\r\n`, "i");
    let chunks = [];
    let size = 0; // bytes in `chunks`
    let length = -1; // of the body that is awaited; -1 while its header is
    return function* (chunk) {
        chunks.push(chunk);
        size += chunk.length;
        if (size < length)
            return; // a large body is joined once, not with each chunk
        let data = Buffer.concat(chunks);
        for (;;) {
            if (length < 0) {
                const start = data.toString("latin1", 0, 4_096);
                const [found, , digits] = header.exec(start) ?? [];
                if (!found) {
                    const isComplete = start.length === 4_096 || start.includes("\r\n\r\n");
                    if (isComplete || !/^[\w-]*(:|$)/.test(start)) {
                        throw new Error(`not a frame: ${JSON.stringify(start.slice(0, 80))}`);
                    }
                    break;
                }
                length = Number(digits);
                if (length > limit)
                    throw new Error(`a frame of ${digits} bytes, the limit is ${limit}`);
                data = data.subarray(found.length);
            }
            if (data.length < length)
                break;
            const body = data.subarray(0, length);
            data = data.subarray(length);
            length = -1;
            yield body;
        }
        chunks = [data];
        size = data.length;
    };
};
