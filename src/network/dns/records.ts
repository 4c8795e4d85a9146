/** The addresses in an answer of another name server, and for how long they count. */
import { addressText } from "../bytes.ts";
import { TYPES } from "./message.ts";

const HEADER = 12;
const CNAME = 5;
/** Names that point at names: no answer has more. */
const HOPS = 16;

interface AnswerRecord {
  name: string;
  type: number;
  ttl_s: number;
  data: Buffer;
  /** What a CNAME points at. */
  target: string;
}

/** Addresses that `name` stands for in this answer, by way of other names too; none of what else is in it. */
export function addressesIn(message: Buffer, name: string): { address: string; ttl_s: number }[] {
  const records = readRecords(message);
  const names = new Map([[name, Number.MAX_SAFE_INTEGER]]);
  for (let hop = 0; hop < HOPS; hop++) {
    for (const { type, name: from, target, ttl_s } of records) {
      const known = type === CNAME ? names.get(from) : undefined;
      if (known !== undefined && !names.has(target)) names.set(target, Math.min(known, ttl_s));
    }
  }
  return records.flatMap(({ type, name: owner, ttl_s, data }) => {
    const kept_s = names.get(owner);
    const length = { [TYPES.A]: 4, [TYPES.AAAA]: 16 }[type];
    if (kept_s === undefined || length !== data.length) return [];
    return [{ address: addressText(data), ttl_s: Math.min(kept_s, ttl_s) }];
  });
}

function readRecords(message: Buffer): AnswerRecord[] {
  const found: AnswerRecord[] = [];
  try {
    let at = HEADER;
    for (let n = message.readUInt16BE(4); n > 0; n--) at = nameAt(message, at).end + 4;
    for (let n = message.readUInt16BE(6); n > 0; n--) {
      const { name, end } = nameAt(message, at);
      const [type, ttl_s, length] = [
        message.readUInt16BE(end),
        message.readUInt32BE(end + 4),
        message.readUInt16BE(end + 8),
      ];
      const data = message.subarray(end + 10, end + 10 + length);
      found.push({ name, type, ttl_s, data, target: type === CNAME ? nameAt(message, end + 10).name : "" });
      at = end + 10 + length;
    }
  } catch {
    // Cut short or not well formed: what was read before counts.
  }
  return found;
}

/** A name, which may go on elsewhere in the message; throws when it does not end. */
function nameAt(message: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = [];
  let [at, end] = [start, -1];
  for (let steps = 0; steps < 128; steps++) {
    const length = message.readUInt8(at);
    if (length >= 0xc0) {
      if (end < 0) end = at + 2;
      at = message.readUInt16BE(at) & 0x3fff;
    } else if (length === 0) {
      return { name: labels.join(".").toLowerCase(), end: end < 0 ? at + 1 : end };
    } else {
      labels.push(message.toString("latin1", at + 1, at + 1 + length));
      at += length + 1;
    }
  }
  throw new Error("a name without an end");
}
