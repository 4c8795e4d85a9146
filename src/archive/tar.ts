/** Writes tar archives (ustar, with pax where a name or a number does not fit). Names are latin1 strings of bytes. */
export interface PackedEntry {
  path: string;
  type: "file" | "directory" | "symlink" | "hardlink";
  mode: number;
  uid: number;
  gid: number;
  /** Seconds since 1970. */
  mtime: number;
  size: number;
  link?: string;
}

const BLOCK = 512;
const FLAGS = { file: "0", hardlink: "1", symlink: "2", directory: "5" } as const;
/** Maximum of the octal fields. */
const MAX_ID = 0o7777777;
const MAX_SIZE = 0o77777777777;

/** The two zero blocks that end an archive. */
export const TAR_END: Buffer = Buffer.alloc(2 * BLOCK);

/** Padding after content of this size. */
export const tarPadding = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);

/** The header of an entry, preceded by an extended one if needed. */
export function tarHeader(entry: PackedEntry): Buffer {
  const extended = [
    ...(entry.path.length > 100 ? [["path", entry.path] as const] : []),
    ...((entry.link?.length ?? 0) > 100 ? [["linkpath", entry.link ?? ""] as const] : []),
    ...(entry.size > MAX_SIZE ? [["size", String(entry.size)] as const] : []),
    ...(entry.uid > MAX_ID ? [["uid", String(entry.uid)] as const] : []),
    ...(entry.gid > MAX_ID ? [["gid", String(entry.gid)] as const] : []),
  ];
  if (extended.length === 0) return block(entry, FLAGS[entry.type]);
  const records = Buffer.from(extended.map(([name, value]) => record(name, value)).join(""), "latin1");
  const about = { ...entry, path: "pax", link: "", size: records.length, mode: 0o644 };
  return Buffer.concat([block(about, "x"), records, tarPadding(records.length), block(entry, FLAGS[entry.type])]);
}

function block({ path, mode, uid, gid, size, mtime, link = "" }: PackedEntry, flag: string): Buffer {
  const header = Buffer.alloc(BLOCK);
  header.write(path.slice(0, 100), 0, "latin1");
  header.write(octal(mode & 0o7777, 7), 100);
  header.write(octal(Math.min(uid, MAX_ID), 7), 108);
  header.write(octal(Math.min(gid, MAX_ID), 7), 116);
  header.write(octal(Math.min(size, MAX_SIZE), 11), 124);
  header.write(octal(Math.min(Math.max(0, Math.floor(mtime)), MAX_SIZE), 11), 136);
  header.write("        ", 148);
  header.write(flag, 156);
  header.write(link.slice(0, 100), 157, "latin1");
  header.write("ustar\x0000", 257, "latin1");
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  );
  return header;
}

const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, "0");

/** `length name=value`, where the length includes its own digits. */
function record(name: string, value: string): string {
  const rest = ` ${name}=${value}\n`;
  let length = rest.length + 1;
  while (`${length}`.length + rest.length !== length) length = `${length}`.length + rest.length;
  return `${length}${rest}`;
}
