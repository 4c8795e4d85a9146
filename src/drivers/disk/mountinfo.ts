import { readFile } from "node:fs/promises";

export interface Mount {
  point: string;
  type: string;
  /** The device, as it was mounted. */
  source: string;
}

/** Reads the mounts from the kernel, the only source of truth about them. */
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

/** The visible mount at `point`: the last one made. */
export async function mountAt(point: string): Promise<Mount | undefined> {
  return (await mounts()).findLast((mount) => mount.point === point);
}

/** Decodes octal escapes, such as those of spaces. */
const plain = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
