/** Frames with a `Content-Length`: bytes to bodies. No I/O. */

/**
 * Returns a function that splits bytes into the bodies of frames: it yields those that are complete with its chunk. It
 * throws if the bytes are no frames: the link cannot go on.
 *
 * A thread runs the source text of this function, so it refers to nothing outside of itself.
 */
export function createFrameDecoder(limit = 4_194_304): (chunk: Uint8Array) => Iterable<Buffer> {
  let chunks: Uint8Array[] = [];
  let size = 0; // bytes in `chunks`
  let length = -1; // of the body that is awaited; -1 while its header is

  function parse(header: string): number {
    const field = /^(?:[\w-]+:.*\r\n){0,15}content-length:[ \t]*(\d{1,10})[ \t]*(?:\r\n[\w-]+:.*){0,15}$/i;
    const found = field.exec(header)?.[1];
    const isAlone = header.match(/^content-length:/gim)?.length === 1;
    if (!found || !isAlone || /^content-type:.*charset=(?!"?utf-?8)/im.test(header)) refuse(header);
    if (Number(found) > limit) refuse(`${found} bytes, more than ${limit}`);
    return Number(found);
  }

  function refuse(header: string): never {
    throw new Error(`not a frame: ${JSON.stringify(header.slice(0, 80))}`);
  }

  return function* (chunk) {
    chunks.push(chunk);
    size += chunk.length;
    if (size < length) return; // a large body is joined once, not with each chunk
    let data = Buffer.concat(chunks);
    for (;;) {
      if (length < 0) {
        const end = data.indexOf("\r\n\r\n");
        const header = data.toString("latin1", 0, end < 0 ? 4097 : end);
        if (header.length > 4096 || !/^[\w-]*(:|$)/.test(header)) refuse(header);
        if (end < 0) break;
        length = parse(header);
        data = data.subarray(end + 4);
      }
      if (data.length < length) break;
      const body = data.subarray(0, length);
      data = data.subarray(length);
      length = -1;
      yield body;
    }
    chunks = [data];
    size = data.length;
  };
}
