/** What it costs to resume that the memory of a suspended machine is encrypted on the disk: a process that holds 400 MB. */
import { median, type Report } from "../report.ts";
import type { Hangar } from "./hangar.ts";
import { suspendAndResume } from "./suspend.ts";

const HELD_MB = 400;
/** Random, so that no page of it is like another, or empty. */
const HOLD = `globalThis.held = require("node:crypto").randomBytes(${HELD_MB} * 2 ** 20); setInterval(() => {}, 1000);
  require("node:http").createServer((_, answer) => answer.end(String(held.length))).listen(8080)`;
const MEMORY_MB = 1024;

export async function sealedResume(report: Report, hangar: Hangar, rounds: number): Promise<void> {
  report.section(`resume of a process with ${HELD_MB} MB, whose memory was sealed on the disk`);
  const id = await hangar.create("holder", "hangar/hello", ["node", "-e", HOLD], MEMORY_MB);
  const before = hangar.timings("been resumed").length;
  const whole: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const round = await suspendAndResume(hangar, id, "snapshot");
    if ("refused" in round) return report.skip("sealed memory", round.refused);
    whole.push(round.resume);
  }
  await hangar.remove("holder");
  const laps = hangar.timings("been resumed").slice(before);
  const lap = (name: string): number[] => laps.map((of) => of[name] ?? 0);
  const [resume, unseal] = [median(whole), median(lap("unseal"))];
  report.add({ what: "resume, p50", value: resume, unit: "ms" });
  report.add({ what: "of it, reading and decrypting the memory, p50", value: unseal, unit: "ms" });
  report.add({ what: "of it, CRIU, p50", value: median(lap("restore")), unit: "ms" });
  const slower = whole.map((all, i) => (100 * (lap("unseal")[i] ?? 0)) / (all - (lap("unseal")[i] ?? 0)));
  report.add({ what: "slower than without sealing by, p50", value: median(slower), unit: "%", at_most: 15 });
}
