import { PROXY_LIMITS } from "../../limits.ts";
import { type FieldName, fieldName } from "./fields.ts";

interface Known {
  readonly bytes: Buffer;
  readonly name: FieldName;
}

const NOTHING: Known = { bytes: Buffer.alloc(0), name: fieldName("") };

/**
 * Caches header names as written with what is known of them. Programs repeat the same few names, so each is validated
 * once; the table has one entry per hash, holding the name seen last.
 */
const places = Array.from({ length: PROXY_LIMITS.names_remembered }, () => NOTHING);

/** The name in `bytes[from … to]`; `hash` is any number that is the same for the same name. */
export function nameAt(bytes: Buffer, from: number, to: number, hash: number): FieldName {
  const place = (hash >>> 0) % PROXY_LIMITS.names_remembered;
  const known = places[place] as Known;
  if (isAt(known.bytes, bytes, from, to)) return known.name;
  const name = fieldName(bytes.toString("latin1", from, to));
  if (to - from <= PROXY_LIMITS.name_remembered_bytes) {
    places[place] = { bytes: Buffer.from(bytes.subarray(from, to)), name };
  }
  return name;
}

function isAt(wanted: Buffer, bytes: Buffer, from: number, to: number): boolean {
  const { length } = wanted;
  if (length !== to - from) return false;
  for (let i = 0; i < length; i++) if (wanted[i] !== bytes[from + i]) return false;
  return true;
}
