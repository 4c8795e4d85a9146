/** Build contexts for tests of image builds: files as the platform takes them in. */
import { createHash } from "node:crypto";
import { TAR_END, tarHeader, tarPadding } from "#archive/tar.ts";

export const digestOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/** A tar of files that are named by their digests. */
export function tarOf(files: readonly Buffer[]): Buffer {
  const entry = { type: "file", mode: 0o644, uid: 0, gid: 0, mtime: 0 } as const;
  const packed = files.flatMap((bytes) => [
    tarHeader({ ...entry, path: digestOf(bytes), size: bytes.length }),
    bytes,
    tarPadding(bytes.length),
  ]);
  return Buffer.concat([...packed, TAR_END]);
}
