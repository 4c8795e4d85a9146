/** DNS messages, as far as a server of a few names needs them: one question in, records out. */
import dns, { type DecodedPacket } from "dns-packet";

export const RCODES = { ok: 0, failure: 2, no_name: 3, refused: 5 } as const;

export interface Question {
  id: number;
  /** Lower case, without the final dot. */
  name: string;
  /** `A`, `TXT`, …; `UNKNOWN_<number>` for one that has no name. */
  type: string;
  recursion: boolean;
  /** Largest response that the client accepts in one datagram. */
  size: number;
  /** The question section, repeated in the response. */
  bytes: Buffer;
}

export type RecordData = { type: "A" | "AAAA"; address: string } | { type: "TXT"; text: string };

const HEADER = 12;
/** Header positions of the counts of questions, answers, authorities and additional records. */
const COUNTS = { questions: 4, answers: 6, authorities: 8, additionals: 10 } as const;
/** Minimum size of a question and of a record. */
const QUESTION_BYTES = 5;
const RECORD_BYTES = 11;
const TTL_S = 5;
/** The opcode bits; 0 is a query. */
const OPCODE = 0x7800;
const NAME_POINTER = Buffer.from([0xc0, HEADER]);
const DATAGRAM = { without_edns: 512, most: 1232 } as const;

/** Decodes the message up to its questions or answers; undefined when malformed. */
export function decodeUntil(message: Buffer, last: "questions" | "answers" | "additionals"): DecodedPacket | undefined {
  if (message.length < HEADER) return undefined;
  const part = Buffer.from(message);
  part.fill(0, COUNTS[last] + 2, HEADER);
  const records = [COUNTS.answers, COUNTS.authorities, COUNTS.additionals].map((at) => part.readUInt16BE(at));
  const least = records.reduce((sum, count) => sum + count, 0) * RECORD_BYTES;
  // The decoder allocates by the header's counts, so they are checked first.
  if (HEADER + part.readUInt16BE(COUNTS.questions) * QUESTION_BYTES + least > message.length) return undefined;
  try {
    return dns.decode(part);
  } catch {
    return undefined;
  }
}

/** Undefined unless it is one plain question. */
export function readQuestion(message: Buffer): Question | undefined {
  const packet = decodeUntil(message, "questions");
  const [question, another] = packet?.questions ?? [];
  if (!packet || !question || another || packet.type !== "query" || ((packet.flags ?? 0) & OPCODE) !== 0)
    return undefined;
  const end = dns.decode.bytes;
  // No compression pointers: nothing precedes the question.
  if (message[end - QUESTION_BYTES] !== 0) return undefined;
  return {
    id: packet.id ?? 0,
    name: question.name === "." ? "" : question.name.toLowerCase(),
    type: question.type,
    recursion: packet.flag_rd,
    size: extendedSize(message),
    bytes: message.subarray(HEADER, end),
  };
}

/** The EDNS payload size; 512 bytes without it. */
function extendedSize(message: Buffer): number {
  if (message.readUInt16BE(COUNTS.additionals) === 0) return DATAGRAM.without_edns;
  const extra = decodeUntil(message, "additionals")?.additionals?.find(({ type }) => type === "OPT");
  const requested = extra?.type === "OPT" ? extra.udpPayloadSize : DATAGRAM.without_edns;
  return Math.min(Math.max(requested, DATAGRAM.without_edns), DATAGRAM.most);
}

/** Builds a response; records beyond `size` are omitted and the TC flag is set. */
export function writeAnswer(
  question: Question,
  rcode: number,
  records: readonly RecordData[],
  size = question.size,
): Buffer {
  const parts: Buffer[] = [];
  let length = HEADER + question.bytes.length;
  let truncated = 0;
  for (const record of records.map(recordBytes)) {
    if (length + record.length > size) {
      truncated = dns.TRUNCATED_RESPONSE;
      break;
    }
    parts.push(record);
    length += record.length;
  }
  const recursion = dns.RECURSION_AVAILABLE | (question.recursion ? dns.RECURSION_DESIRED : 0);
  const flags = dns.AUTHORITATIVE_ANSWER | recursion | truncated | rcode;
  const header = dns.encode({ type: "response", id: question.id, flags });
  header.writeUInt16BE(1, COUNTS.questions);
  header.writeUInt16BE(parts.length, COUNTS.answers);
  return Buffer.concat([header, question.bytes, ...parts]);
}

/** Encodes a record with a pointer to the question's name: 41 records fit instead of the package's 17. */
function recordBytes(record: RecordData): Buffer {
  const rest = { name: ".", ttl: TTL_S } as const;
  const answer =
    record.type === "TXT"
      ? ({ ...rest, type: "TXT", data: textParts(record.text) } as const)
      : ({ ...rest, type: record.type, data: record.address } as const);
  return Buffer.concat([NAME_POINTER, dns.encode({ type: "response", answers: [answer] }).subarray(HEADER + 1)]);
}

/** Character strings of at most 255 bytes. */
function textParts(text: string): Buffer[] {
  const bytes = Buffer.from(text);
  const parts: Buffer[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += 255) parts.push(bytes.subarray(at, at + 255));
  return parts;
}
