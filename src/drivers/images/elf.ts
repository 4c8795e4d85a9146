/** Parses ELF files far enough to find the libraries that a program needs. */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { basename, join } from "node:path";

interface ElfNeeds {
  /** The dynamic loader's path. */
  interpreter: string | undefined;
  libraries: string[];
}

const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_NEEDED = 1;
const DT_STRTAB = 5;

interface Segment {
  type: number;
  offset: number;
  address: number;
  size: number;
}

/** Dependencies of a 64-bit little-endian ELF program; undefined for other files. */
function elfNeeds(file: Buffer): ElfNeeds | undefined {
  if (file.toString("latin1", 0, 4) !== "\x7fELF" || file[4] !== 2 || file[5] !== 1) return undefined;
  const segments = segmentsOf(file);
  const interp = segments.find(({ type }) => type === PT_INTERP);
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  return {
    interpreter: interp && text(file, interp.offset),
    libraries: dynamic ? neededBy(file, dynamic, segments) : [],
  };
}

function segmentsOf(file: Buffer): Segment[] {
  const start = Number(file.readBigUInt64LE(32));
  const size = file.readUInt16LE(54);
  return Array.from({ length: file.readUInt16LE(56) }, (_, i) => {
    const at = start + i * size;
    return {
      type: file.readUInt32LE(at),
      offset: Number(file.readBigUInt64LE(at + 8)),
      address: Number(file.readBigUInt64LE(at + 16)),
      size: Number(file.readBigUInt64LE(at + 32)),
    };
  });
}

function neededBy(file: Buffer, dynamic: Segment, segments: readonly Segment[]): string[] {
  const entries: [tag: number, value: number][] = [];
  for (let at = dynamic.offset; at + 16 <= dynamic.offset + dynamic.size; at += 16) {
    entries.push([Number(file.readBigInt64LE(at)), Number(file.readBigUInt64LE(at + 8))]);
  }
  const table = entries.find(([tag]) => tag === DT_STRTAB)?.[1] ?? 0;
  // The table is given by its virtual address; the segment containing it gives the file offset.
  const home = segments.find(
    ({ type, address, size }) => type === PT_LOAD && table >= address && table < address + size,
  );
  if (!home) return [];
  const strings = table - home.address + home.offset;
  return entries.flatMap(([tag, value]) => (tag === DT_NEEDED ? [text(file, strings + value)] : []));
}

function text(file: Buffer, start: number): string {
  return file.toString("latin1", start, file.indexOf(0, start));
}

const TRIPLETS: Record<string, string> = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" };

/** Library directories of Debian and others. */
const folders = (): string[] => {
  const triplet = TRIPLETS[process.arch] ?? "";
  return [`/lib/${triplet}`, `/usr/lib/${triplet}`, "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
};

/**
 * All files that a program needs to run elsewhere: target path and local file. Fails with the name of a missing
 * library.
 */
export function programFiles(program: string): Map<string, string> {
  const files = new Map<string, string>();
  const seen = new Set<string>();
  const waiting = [program];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const needs = elfNeeds(readFileSync(file));
    if (needs?.interpreter) files.set(needs.interpreter, realpathSync(needs.interpreter));
    for (const name of needs?.libraries ?? []) {
      if (seen.has(name)) continue;
      seen.add(name);
      const folder = folders().find((one) => existsSync(join(one, name)));
      if (!folder) throw new Error(`${basename(program)} needs ${name}, which is not on this box`);
      const real = realpathSync(join(folder, name));
      // The default directory of every loader.
      files.set(`/usr/lib/${name}`, real);
      waiting.push(real);
    }
  }
  return files;
}
