/** Hand-written HTTP/2 frames, such as no client library sends. */

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
export const TYPE = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 } as const;
export const FLAG = { ack: 1, end_stream: 1, end_headers: 4 } as const;

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** An integer as HPACK encodes it (RFC 7541, 5.1); `first` has the other bits of its first byte. */
function integer(value: number, bits: number, first: number): Buffer {
  const most = 2 ** bits - 1;
  if (value < most) return Buffer.from([first | value]);
  const bytes = [first | most];
  let rest = value - most;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

const literal = (value: string): Buffer => Buffer.concat([integer(value.length, 7, 0), Buffer.from(value, "latin1")]);
/** A field with incremental indexing: the receiver adds it to its table, and one byte refers to it from then on. */
export const indexed = (name: string, value: string): Buffer =>
  Buffer.concat([Buffer.from([0x40]), literal(name), literal(value)]);
export const plain = (name: string, value: string): Buffer =>
  Buffer.concat([Buffer.from([0]), literal(name), literal(value)]);
/** GET, https, /, and the authority. */
export const REQUEST = Buffer.concat([Buffer.from([0x82, 0x87, 0x84]), plain(":authority", "web.localhost")]);
/** The newest field of the table. */
export const NEWEST = 0x80 | 62;

export const reset = (stream: number): Buffer => frame(TYPE.reset, 0, stream, Buffer.from([0, 0, 0, 8]));
export const request = (stream: number, fields = REQUEST): Buffer =>
  frame(TYPE.headers, FLAG.end_headers | FLAG.end_stream, stream, fields);
export const streamId = (n: number): number => 2 * n + 1;
