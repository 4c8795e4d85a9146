/** The build context of a folder: its files with their digests, without what `.dockerignore` leaves out. */
import { createHash } from "node:crypto";
import { createReadStream, existsSync, readFileSync, type Stats } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { TAR_END, tarHeader, tarPadding } from "#archive/tar.ts";
import { UsageError } from "../verb.ts";
import { type IgnoreRules, ignoreRules } from "./ignore.ts";

export interface ContextFile {
  path: string;
  sha256?: string;
  link?: string;
  mode?: number;
}

export interface BuildContext {
  files: ContextFile[];
  /** Of all files. */
  bytes: number;
  /** A tar of the files with these digests, each named by its digest. */
  pack(digests: readonly string[]): AsyncGenerator<Buffer>;
}

/** Needed whatever the rules say, as with Docker. */
const readRules = (dir: string, dockerfile: string, ignorefile: string | undefined): IgnoreRules => {
  if (ignorefile !== undefined && !existsSync(join(dir, ignorefile)))
    throw new UsageError(`[build] ignorefile names ${ignorefile}, which does not exist`);
  const named = [ignorefile, `${dockerfile}.dockerignore`, ".dockerignore"];
  const file = named.find((name) => name !== undefined && existsSync(join(dir, name)));
  return ignoreRules(file === undefined ? "" : readFileSync(join(dir, file), "utf8"));
};

export async function readContext(dir: string, dockerfile: string, ignorefile?: string): Promise<BuildContext> {
  const rules = readRules(dir, dockerfile, ignorefile);
  const files: ContextFile[] = [];
  const sources = new Map<string, { file: string; size: number }>();
  let bytes = 0;
  /** An ignored folder is read only when an exception may include a file in it. */
  const addFolder = async (path: string, ignored: boolean): Promise<void> => {
    if (ignored && !rules.has_exceptions && !dockerfile.startsWith(`${path}/`)) return;
    if (!ignored) files.push({ path });
    for (const name of (await readdir(join(dir, path))).sort()) await add(`${path}/${name}`);
  };
  const addFile = async (path: string, { size, mode }: Stats): Promise<void> => {
    const file = join(dir, path);
    const sha256 = await digestOf(file);
    files.push({ path, sha256, mode: mode & 0o777 });
    sources.set(sha256, { file, size });
    bytes += size;
  };
  const add = async (path: string): Promise<void> => {
    const found = await lstat(join(dir, path));
    const ignored = path !== dockerfile && rules.ignores(path);
    if (found.isDirectory()) return await addFolder(path, ignored);
    if (ignored) return;
    if (found.isSymbolicLink()) files.push({ path, link: await readlink(join(dir, path)) });
    else if (found.isFile()) await addFile(path, found);
  };
  for (const name of (await readdir(dir)).sort()) await add(name);
  return { files, bytes, pack: (digests) => pack(digests, sources) };
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

async function* pack(
  digests: readonly string[],
  sources: ReadonlyMap<string, { file: string; size: number }>,
): AsyncGenerator<Buffer> {
  for (const digest of digests) {
    const { file, size } = sources.get(digest) ?? { file: "", size: 0 };
    yield tarHeader({ path: digest, type: "file", mode: 0o644, uid: 0, gid: 0, mtime: 0, size });
    let sent = 0;
    if (size > 0)
      for await (const chunk of createReadStream(file, { end: size - 1 })) {
        sent += (chunk as Buffer).length;
        yield chunk as Buffer;
      }
    if (sent !== size) throw new UsageError(`${file} changed while it was sent; start the build again`);
    yield tarPadding(size);
  }
  yield TAR_END;
}
