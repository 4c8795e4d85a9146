/**
 * The root file system that builds run in: Debian's buildah with its libraries, a shell, and what it needs to trust
 * registries. It is made of what this host has installed, so nothing is fetched for it.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { type PackedEntry, TAR_END, tarHeader, tarPadding } from "#archive/tar.ts";
import { programFile } from "../choice.ts";
import { programFiles } from "../images/elf.ts";

/** Changes when what is made here does. */
const VERSION = 1;
const BUSYBOX = "/bin/busybox";
/** What the script of a build calls. */
const APPLETS = ["sh", "mkdir", "rm", "cat", "base64", "df", "ln", "awk", "tac", "umount", "mount"];
const FOLDERS = ["tmp", "etc", "root", "dev", "proc", "sys", "run", "var/tmp", "var/lib/containers"];
/** Configuration and certificates, as Debian's packages bring them. */
const COPIED = ["/usr/share/containers", "/etc/containers/policy.json", "/etc/containers/registries.conf.d"];
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";

const TEXTS: Record<string, string> = {
  "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
  "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
  "/etc/containers/registries.conf": 'unqualified-search-registries = ["docker.io"]\n',
  "/etc/containers/storage.conf":
    '[storage]\ndriver = "overlay"\nrunroot = "/run/containers"\ngraphroot = "/var/lib/containers/storage"\n',
};

/** Why there can be no builds on this host, or undefined. */
export function buildahMissing(): string | undefined {
  if (!programFile("buildah")) return "buildah is not installed (apt-get install buildah)";
  return existsSync(BUSYBOX) ? undefined : "busybox is not installed (apt-get install busybox-static)";
}

/** The path in the builder's root, and the file it is here. */
function filesOf(): Map<string, string> {
  const buildah = programFile("buildah") ?? "/usr/bin/buildah";
  const files = new Map([["/usr/bin/buildah", realpathSync(buildah)]]);
  for (const [path, from] of programFiles(buildah)) files.set(path, from);
  files.set("/bin/busybox", BUSYBOX);
  for (const [path, from] of programFiles(BUSYBOX)) files.set(path, from);
  for (const path of COPIED) for (const file of below(path)) files.set(file, realpathSync(file));
  if (existsSync(CERTIFICATES)) files.set(CERTIFICATES, realpathSync(CERTIFICATES));
  return files;
}

function below(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isDirectory()) return found ? [path] : [];
  return readdirSync(path).flatMap((name) => below(join(path, name)));
}

/** The same files are the same root. */
export function builderFingerprint(): string {
  const hash = createHash("sha256").update(`${VERSION} ${JSON.stringify(TEXTS)} ${APPLETS.join(" ")}\n`);
  for (const [path, from] of filesOf()) {
    const { size, mtimeMs } = statSync(from);
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest("hex");
}

export async function* builderTar(): AsyncIterable<Buffer> {
  const files = filesOf();
  const paths = [...files.keys(), ...Object.keys(TEXTS)].map((path) => path.slice(1));
  const folders = new Set([...FOLDERS, ...paths.map((path) => dirname(path))].flatMap(withParents));
  for (const path of [...folders].sort())
    yield tarHeader(entry({ path: `${path}/`, type: "directory", mode: path.endsWith("tmp") ? 0o1777 : 0o755 }));
  for (const [path, text] of Object.entries(TEXTS)) yield* file(path, Buffer.from(text), 0o644);
  for (const [path, from] of files)
    yield* file(path, readFileSync(from), (statSync(from).mode & 0o111) === 0 ? 0o644 : 0o755);
  for (const name of APPLETS)
    yield tarHeader(entry({ path: `bin/${name}`, type: "symlink", mode: 0o777, link: "busybox" }));
  yield TAR_END;
}

const entry = (given: Pick<PackedEntry, "path" | "type" | "mode"> & Partial<PackedEntry>): PackedEntry => ({
  uid: 0,
  gid: 0,
  mtime: 0,
  size: 0,
  ...given,
});

function* file(path: string, bytes: Buffer, mode: number): Iterable<Buffer> {
  yield tarHeader(entry({ path: path.slice(1), type: "file", mode, size: bytes.length }));
  yield bytes;
  yield tarPadding(bytes.length);
}

const withParents = (path: string): string[] =>
  path === "." || path === "" ? [] : [...withParents(dirname(path)), path];
