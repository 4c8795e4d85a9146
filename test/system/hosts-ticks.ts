/**
 * What machines said themselves, read from outside: each says when it was booted and then the time, again and again, by
 * the wall clock, which all machines of a box share (/proc/uptime is each machine's own). Laid side by side over all hosts, it shows where each of them ran when.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Span } from "./hosts-history.ts";

/** For `init.exec`; it waits without a process of its own, so that many of them cost little. */
export const TICKER = [
  "sh",
  "-c",
  `trap 'exit 0' TERM INT; mkfifo /tmp/never; exec 3<>/tmp/never
echo boot $EPOCHREALTIME
while :; do read -t 0.2 x <&3; echo tick $EPOCHREALTIME; done`,
];

/** The clock of the ticks, in seconds. */
export const tickClock = (): number => Date.now() / 1000;

interface Place {
  id: string;
  data_dir: string;
}

/** Logs go when a machine comes to a host again, so they are read all the time. */
export class Ticks {
  readonly #hosts: readonly Place[];
  readonly #machines = new Set<string>();
  /** By host and machine: when, and whether it was a boot. */
  readonly #heard = new Map<string, Map<number, "boot" | "tick">>();
  #reading = true;
  readonly #done: Promise<void>;

  constructor(hosts: readonly Place[]) {
    this.#hosts = hosts;
    this.#done = this.#run();
  }

  follow(...machines: readonly string[]): void {
    for (const machine of machines) this.#machines.add(machine);
  }

  /** When it ticked or was booted there, the earliest first. */
  of(host: string, machine: string, kind?: "boot"): number[] {
    const heard = [...(this.#heard.get(`${host} ${machine}`) ?? [])];
    return heard.flatMap(([at, what]) => (kind === undefined || what === kind ? [at] : [])).sort((a, b) => a - b);
  }

  /** From each boot to the last word before the next one. */
  spans(): Span[] {
    return [...this.#heard].flatMap(([key, heard]) => {
      const [host = "", machine = ""] = key.split(" ");
      const spans: Span[] = [];
      for (const [at, what] of [...heard].sort(([a], [b]) => a - b)) {
        const last = spans.at(-1);
        if (what === "boot" || !last) spans.push({ host, machine, from: at, to: at });
        else last.to = at;
      }
      return spans;
    });
  }

  /** A last look, and no more. */
  async stop(): Promise<void> {
    this.#reading = false;
    await this.#done;
    this.#look();
  }

  /** However the test ends, nobody reads on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#reading = false;
    await this.#done;
  }

  #look(): void {
    for (const { id, data_dir } of this.#hosts) {
      for (const machine of this.#machines) {
        const file = join(data_dir, "logs", machine, "log");
        if (existsSync(file)) this.#hear(`${id} ${machine}`, readFileSync(file, "utf8"));
      }
    }
  }

  #hear(key: string, text: string): void {
    const heard = this.#heard.get(key) ?? new Map<number, "boot" | "tick">();
    this.#heard.set(key, heard);
    for (const [, what, at] of text.matchAll(/(boot|tick) ([\d.]+)$/gm))
      if (what === "boot" || !heard.has(Number(at))) heard.set(Number(at), what as "boot" | "tick");
  }

  async #run(): Promise<void> {
    while (this.#reading) {
      this.#look();
      await delay(1000);
    }
  }
}
