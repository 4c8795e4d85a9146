/** What the file helper answers: fields that end with a zero byte, and entries made of seven of them. */
import { isoTime } from "#core/clock.ts";

export interface Entry {
  name: string;
  path: string;
  /** `file`, `directory`, `symlink`, … */
  type: string;
  size: number;
  mode: string;
  modTime: string;
  isDir: boolean;
  uid: number;
  gid: number;
}

const FIELD_BYTES = 70_000;

export async function* fieldsOf(stream: AsyncIterable<Buffer>): AsyncGenerator<string, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of stream) {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    let from = 0;
    for (let at = rest.indexOf(0); at >= 0; at = rest.indexOf(0, from)) {
      yield rest.toString("utf8", from, at);
      from = at + 1;
    }
    rest = rest.subarray(from);
    // It is not ours alone: whoever is root in the machine may write there.
    if (rest.length > FIELD_BYTES) throw new Error("a field of the file helper is too long");
  }
}

export async function* groupsOf(fields: AsyncGenerator<string, undefined>, size: number): AsyncGenerator<string[]> {
  let group: string[] = [];
  for await (const field of fields) {
    group.push(field);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
}

export const ENTRY_FIELDS = 7;
const TYPE_BITS = 0o170000;
const MODE_BITS = 0o7777;
const TYPES = new Map([
  [0o100000, "file"],
  [0o040000, "directory"],
  [0o120000, "symlink"],
  [0o010000, "fifo"],
  [0o140000, "socket"],
  [0o020000, "character_device"],
  [0o060000, "block_device"],
]);

/** Of the fields of an entry below a folder; the one with an empty name is the folder itself. */
export function entryOf([mode = "", size, seconds, nanos, uid, gid, name = ""]: string[], folder: string): Entry {
  const bits = Number.parseInt(mode, 8);
  const type = TYPES.get(bits & TYPE_BITS) ?? "unknown";
  return {
    name: name || baseOf(folder),
    path: name === "" ? folder : joined(folder, name),
    type,
    size: Number(size),
    mode: modeText(bits & MODE_BITS),
    modTime: isoTime(Number(seconds) * 1000 + Math.floor(Number(nanos) / 1e6)),
    isDir: type === "directory",
    uid: Number(uid),
    gid: Number(gid),
  };
}

export const modeText = (mode: number): string => mode.toString(8).padStart(4, "0");
export const joined = (folder: string, name: string): string => (folder.endsWith("/") ? folder : `${folder}/`) + name;
const baseOf = (path: string): string => path.split("/").filter(Boolean).at(-1) ?? "/";
