/**
 * The built-in image `hangar/hello`: an HTTP server on port 8080 that shows where it runs and counts its requests. It
 * is built from this host's Node and, when installed, busybox for a shell inside, so it needs no network.
 */

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type PackedEntry, TAR_END, tarHeader, tarPadding } from "#archive/tar.ts";
import { programFiles } from "./elf.ts";

export const HELLO = "registry-1.docker.io/hangar/hello:latest";

const SERVER = join(import.meta.dirname, "hello-server.mjs");
const BUSYBOX = "/bin/busybox";

export const HELLO_CONFIG = {
  // Cmd, not Entrypoint: a command given to `hangar run` is run instead of the server.
  Cmd: ["/usr/bin/node", "/hello/server.mjs"],
  // Makes the loader of every distribution find the libraries.
  Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH=/usr/lib"],
  WorkingDir: "/",
  ExposedPorts: { "8080/tcp": {} },
  Labels: { "org.opencontainers.image.title": "hangar/hello" },
};

/** Changes when the image would: another Node, busybox or server script. */
export async function helloFingerprint(): Promise<string> {
  const hash = createHash("sha256")
    .update(await readFile(SERVER))
    .update(JSON.stringify(HELLO_CONFIG));
  for (const file of [process.execPath, BUSYBOX]) {
    const stat = statSync(file, { throwIfNoEntry: false });
    hash.update(`${file} ${stat?.size} ${stat?.mtimeMs}\n`);
  }
  return hash.digest("hex");
}

/** The image's only layer as a tar. */
export async function* helloLayer(): AsyncIterable<Buffer> {
  const files = new Map<string, string>([
    ["/usr/bin/node", process.execPath],
    ...programFiles(process.execPath),
    ["/hello/server.mjs", SERVER],
  ]);
  const links = new Map<string, string>();
  if (existsSync(BUSYBOX)) {
    files.set("/bin/busybox", BUSYBOX);
    for (const [path, from] of programFiles(BUSYBOX)) files.set(path, from);
    for (const name of applets()) links.set(`/bin/${name}`, "busybox");
  }
  const folders = new Set(["/tmp", "/etc", "/root", "/dev", "/proc", "/sys", "/run", "/var"]);
  for (const path of [...files.keys(), ...links.keys()]) for (const folder of parents(path)) folders.add(folder);
  for (const path of [...folders].sort())
    yield tarHeader(entry({ path: `${path.slice(1)}/`, type: "directory", mode: path === "/tmp" ? 0o1777 : 0o755 }));
  yield* text("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n");
  yield* text("/etc/group", "root:x:0:\nnogroup:x:65534:\n");
  for (const [path, from] of files) yield* content(path, from);
  for (const [path, link] of links) yield tarHeader(entry({ path: path.slice(1), type: "symlink", mode: 0o777, link }));
  yield TAR_END;
}

/** Deterministic: the same files give the same layer. */
const entry = (given: Partial<PackedEntry> & Pick<PackedEntry, "path" | "type" | "mode">): PackedEntry => ({
  uid: 0,
  gid: 0,
  mtime: 0,
  size: 0,
  ...given,
});

function* text(path: string, body: string): Iterable<Buffer> {
  const bytes = Buffer.from(body);
  yield tarHeader(entry({ path: path.slice(1), type: "file", mode: 0o644, size: bytes.length }));
  yield bytes;
  yield tarPadding(bytes.length);
}

async function* content(path: string, from: string): AsyncIterable<Buffer> {
  const handle = await open(from, "r");
  try {
    const { size, mode } = await handle.stat();
    yield tarHeader(entry({ path: path.slice(1), type: "file", mode: (mode & 0o111) !== 0 ? 0o755 : 0o644, size }));
    for await (const chunk of handle.createReadStream({ autoClose: false, highWaterMark: 1024 * 1024 }))
      yield chunk as Buffer;
    yield tarPadding(size);
  } finally {
    await handle.close();
  }
}

function parents(path: string): string[] {
  const folder = dirname(path);
  return folder === "/" ? [] : [...parents(folder), folder];
}

function applets(): string[] {
  const { stdout } = spawnSync(BUSYBOX, ["--list"], { encoding: "utf8" });
  return (stdout ?? "").split("\n").filter((name) => /^[\w[\]-]+$/.test(name) && name !== "busybox");
}
