/** The addresses in a response of another name server, with their TTLs. */
import { addressBytes, addressText } from "../bytes.ts";
import { decodeUntil } from "./message.ts";

/** Maximum length of a CNAME chain. */
const HOPS = 16;

interface AnswerRecord {
  name: string;
  type: "A" | "AAAA" | "CNAME";
  ttl_s: number;
  /** An address, or the target of a CNAME. */
  data: string;
}

/** Addresses of `name` in this response, following CNAMEs; other records are ignored. */
export function addressesIn(message: Buffer, name: string): { address: string; ttl_s: number }[] {
  const records = readRecords(message);
  const names = new Map([[name, Number.MAX_SAFE_INTEGER]]);
  for (let hop = 0; hop < HOPS; hop++) {
    for (const { type, name: from, data, ttl_s } of records) {
      const known = type === "CNAME" ? names.get(from) : undefined;
      const target = data.toLowerCase();
      if (known !== undefined && !names.has(target)) names.set(target, Math.min(known, ttl_s));
    }
  }
  return records.flatMap(({ type, name: owner, ttl_s, data }) => {
    const kept_s = names.get(owner);
    if (kept_s === undefined || type === "CNAME") return [];
    return [{ address: addressText(Buffer.from(addressBytes(data))), ttl_s: Math.min(kept_s, ttl_s) }];
  });
}

/** Only the answer section is read. */
function readRecords(message: Buffer): AnswerRecord[] {
  return (decodeUntil(message, "answers")?.answers ?? []).flatMap((one) => {
    if (one.type !== "A" && one.type !== "AAAA" && one.type !== "CNAME") return [];
    return [{ name: one.name.toLowerCase(), type: one.type, ttl_s: one.ttl ?? 0, data: one.data }];
  });
}
