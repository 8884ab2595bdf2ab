/** Frames with a `Content-Length`: bytes to bodies. No I/O. */
/**
 * Returns a function that splits bytes into the bodies of frames: it yields those that are complete with its chunk. It
 * throws if the bytes are no frames: the link cannot go on.
 *
 * A thread runs the source text of this function, so it refers to nothing outside of itself.
 */
export declare const createFrameDecoder: (limit?: number) => (chunk: Uint8Array) => Iterable<Buffer>;
