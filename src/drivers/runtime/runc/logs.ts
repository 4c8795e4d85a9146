/** What machines wrote, as conmon keeps it: one line per line, with its time and where it came from. */
import { open } from "node:fs/promises";
import type { LogLine } from "#machines/driver.ts";
import type { MachinePaths } from "./layout.ts";

/** A line of the file: `2026-01-01T00:00:00.123456789+00:00 stdout F text`; P is a piece of a longer one. */
const LINE = /^(\S+) (stdout|stderr) ([FP]) ?(.*)$/s;

/** Puts lines together from the file's lines; what is not yet whole is kept until it is. */
export class LogParser {
  #rest = "";
  readonly #pieces = { stdout: "", stderr: "" };

  take(text: string): LogLine[] {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#line(line) ?? []);
  }

  #line(line: string): LogLine | undefined {
    const [, time = "", stream, whole, text = ""] = LINE.exec(line) ?? [];
    if (stream !== "stdout" && stream !== "stderr") return undefined;
    const message = this.#pieces[stream] + text;
    this.#pieces[stream] = whole === "P" ? message : "";
    return whole === "P" ? undefined : { timestamp: Date.parse(time), stream, message };
  }
}

/** The newest lines, oldest first, from the file and the one set aside before it. */
export async function readLog({ log }: Pick<MachinePaths, "log">, tail: number): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for (const file of [log, `${log}.1`]) {
    if (lines.length >= tail) break;
    const parser = new LogParser();
    const text = await readFrom(file, 0);
    lines.unshift(...parser.take(text).slice(-(tail - lines.length)));
  }
  return tail <= 0 ? [] : lines.slice(-tail);
}

export async function readFrom(file: string, offset: number): Promise<string> {
  try {
    await using handle = await open(file, "r");
    const { size } = await handle.stat();
    const bytes = Buffer.alloc(Math.max(0, size - offset));
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, offset);
    return bytes.subarray(0, bytesRead).toString("utf8");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw thrown;
  }
}
