import { readFile } from "node:fs/promises";

export interface Mount {
  point: string;
  type: string;
  /** The device, as it was mounted. */
  source: string;
}

/** What is mounted where, as the kernel has it: the only truth about mounts, ours or left by a process before us. */
export async function mounts(): Promise<Mount[]> {
  const text = await readFile("/proc/self/mountinfo", "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => {
      const [before = "", after = ""] = line.split(" - ");
      const [type = "", source = ""] = after.split(" ");
      return { point: plain(before.split(" ")[4] ?? ""), type, source: plain(source) };
    });
}

/** The one that is seen at `point`: the last that was put there. */
export async function mountAt(point: string): Promise<Mount | undefined> {
  return (await mounts()).findLast((mount) => mount.point === point);
}

/** Spaces and the like are written in octal there. */
const plain = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
