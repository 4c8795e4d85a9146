/** DNS messages, as far as a server of a few names needs them: one question in, records out. */
export const TYPES = { A: 1, TXT: 16, AAAA: 28, OPT: 41, ANY: 255 } as const;
export const RCODES = { ok: 0, failure: 2, no_name: 3, refused: 5 } as const;

export interface Question {
  id: number;
  /** Lower case, without the final dot. */
  name: string;
  type: number;
  recursion: boolean;
  /** Largest answer the asker takes in one datagram. */
  size: number;
  /** The question as it came, to be repeated in the answer. */
  bytes: Buffer;
}

export type RecordData = { type: "A" | "AAAA"; address: Uint8Array } | { type: "TXT"; text: string };

const HEADER = 12;
const TTL_S = 5;
const NAME_POINTER = Buffer.from([0xc0, HEADER]);

/** Undefined when it is not one plain question. */
export function readQuestion(message: Buffer): Question | undefined {
  if (message.length < HEADER + 5) return undefined;
  const flags = message.readUInt16BE(2);
  const isQuery = (flags & 0xf800) === 0;
  if (!isQuery || message.readUInt16BE(4) !== 1) return undefined;
  const labels: string[] = [];
  let at = HEADER;
  for (let length = message[at] ?? 0; length !== 0; length = message[at] ?? 0) {
    // No pointers: there is nothing before the question to point at.
    if (length > 63 || at + length + 1 >= message.length) return undefined;
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += length + 1;
  }
  if (at + 5 > message.length || at - HEADER > 255) return undefined;
  const end = at + 5;
  return {
    id: message.readUInt16BE(0),
    name: labels.join(".").toLowerCase(),
    type: message.readUInt16BE(at + 1),
    recursion: (flags & 0x0100) !== 0,
    size: extendedSize(message, end),
    bytes: message.subarray(HEADER, end),
  };
}

/** EDNS says how large an answer may be; without it, 512 bytes. */
function extendedSize(message: Buffer, at: number): number {
  const extra = message.readUInt16BE(10);
  if (extra !== 1 || message.length < at + 11 || message[at] !== 0) return 512;
  if (message.readUInt16BE(at + 1) !== TYPES.OPT) return 512;
  return Math.min(Math.max(message.readUInt16BE(at + 3), 512), 1232);
}

/** An answer with these records; those that do not fit into `size` are left out, and the answer says so. */
export function writeAnswer(
  question: Question,
  rcode: number,
  records: readonly RecordData[],
  size = question.size,
): Buffer {
  const parts: Buffer[] = [];
  let length = HEADER + question.bytes.length;
  let truncated = false;
  for (const record of records.map(recordBytes)) {
    if (length + record.length > size) {
      truncated = true;
      break;
    }
    parts.push(record);
    length += record.length;
  }
  const header = Buffer.alloc(HEADER);
  header.writeUInt16BE(question.id, 0);
  // An answer, with authority, recursion available.
  header.writeUInt16BE(0x8480 | (question.recursion ? 0x0100 : 0) | (truncated ? 0x0200 : 0) | rcode, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(parts.length, 6);
  return Buffer.concat([header, question.bytes, ...parts]);
}

function recordBytes(record: RecordData): Buffer {
  const data = record.type === "TXT" ? textBytes(record.text) : Buffer.from(record.address);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(TYPES[record.type], 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(TTL_S, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([NAME_POINTER, fixed, data]);
}

/** Strings of at most 255 bytes, one after the other. */
function textBytes(text: string): Buffer {
  const bytes = Buffer.from(text);
  const parts: Buffer[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += 255) {
    const piece = bytes.subarray(at, at + 255);
    parts.push(Buffer.from([piece.length]), piece);
  }
  return Buffer.concat(parts);
}
