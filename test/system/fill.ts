import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Takes every byte that is left; what it answers with gives them back. */
export function fill(dir: string): () => void {
  const file = join(dir, "filler");
  const fd = openSync(file, "a");
  try {
    for (let size = 1 << 20; size >= 1; ) {
      try {
        writeSync(fd, Buffer.alloc(size));
      } catch {
        size >>= 1;
      }
    }
  } finally {
    closeSync(fd);
  }
  return () => rmSync(file);
}
