/**
 * What it costs to resume that the memory of a suspended machine is encrypted on the disk: a process that holds 400 MB,
 * over the API; and CRIU alone with such a process, in turn from plain files and from sealed ones.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openCriu } from "#drivers/freeze/criu.ts";
import { ImageServer } from "#drivers/freeze/image-server.ts";
import { sealMemory } from "#drivers/freeze/sealed-memory.ts";
import { nativeProgram } from "#drivers/runtime/runc/native-programs.ts";
import { median, type Report } from "../report.ts";
import type { Hangar } from "./hangar.ts";
import { suspendAndResume } from "./suspend.ts";

/** `HANGAR_BENCH_HELD_MB=100` for a look; up to 64 MB nothing is decrypted while it is read. */
const HELD_MB = Number(process.env["HANGAR_BENCH_HELD_MB"] ?? 400);
/** Random, so that no page of it is like another, or empty. */
const HOLD = `globalThis.held = require("node:crypto").randomBytes(${HELD_MB} * 2 ** 20); setInterval(() => {}, 1000);
  require("node:http").createServer((_, answer) => answer.end(String(held.length))).listen(8080)`;
const MEMORY_MB = 1024;

export async function sealedResume(report: Report, hangar: Hangar, rounds: number): Promise<void> {
  report.section(`resume of a process with ${HELD_MB} MB, whose memory was sealed on the disk`);
  const id = await hangar.create("holder", "hangar/hello", ["node", "-e", HOLD], MEMORY_MB);
  const totals: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const round = await suspendAndResume(hangar, id, "snapshot");
    if ("refused" in round) return report.skip("sealed memory", round.refused);
    totals.push(round.resume);
  }
  await hangar.remove("holder");
  const alone = await criuAlone(rounds);
  if (!alone) return report.skip("CRIU alone", "CRIU could not dump or restore a process of this host");
  const [resume, plain, sealed] = [median(totals), median(alone.plain), median(alone.sealed)];
  report.add({ what: "resume, p50", value: resume, unit: "ms" });
  report.add({ what: "CRIU alone, from plain files, p50", value: plain, unit: "ms" });
  report.add({ what: "CRIU alone, from sealed files, p50", value: sealed, unit: "ms" });
  const more = sealed - plain;
  // CRIU alone cannot take longer than a resume of which it is a part: the box did something else meanwhile.
  if (sealed > resume)
    return report.skip("what sealing costs", "the times contradict each other; run it on an idle box");
  report.add({ what: "slower than without sealing by", value: (100 * more) / (resume - more), unit: "%", at_most: 15 });
}

type Alone = Record<"plain" | "sealed", number[]>;

/** Undefined when it does not work here. */
async function criuAlone(rounds: number): Promise<Alone | undefined> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-criu-"));
  const [plain, sealed_dir, images, run] = ["plain", "sealed", "images", "run"].map((name) => join(dir, name));
  if (!plain || !sealed_dir || !images || !run) return undefined;
  for (const folder of [plain, images, run]) mkdirSync(folder);
  // CRIU keeps what it found out about the kernel in memory.
  spawnSync("mount", ["-t", "tmpfs", "hangar-bench", run]);
  try {
    const criu = await openCriu(join(dir, "bin"), nativeProgram("criu-shim.so"), run);
    if (!criu) return undefined;
    const program = join(criu.bin, "criu");
    const held = spawn("setsid", ["python3", "-c", HOLD_ALONE, join(dir, "ready")], { stdio: "ignore", cwd: "/" });
    while (!existsSync(join(dir, "ready"))) {
      if (held.exitCode !== null) return undefined;
      await pause(50);
    }
    const pid = readFileSync(join(dir, "ready"), "utf8");
    if (spawnSync(program, ["dump", "-t", pid, "-D", plain, "--file-locks"]).status !== 0) {
      held.kill("SIGKILL");
      return undefined;
    }
    const key = randomBytes(32);
    const sealed = await sealMemory(plain, sealed_dir, key);
    const taken: Alone = { plain: [], sealed: [] };
    for (let i = 0; i < rounds; i++) {
      taken.plain.push(await restored(program, plain, dir));
      await using _ = new ImageServer({ snapshot: sealed_dir, images, key, sealed });
      // A resume starts it first, and has to build the root and the network before CRIU begins.
      await readFile(join(images, "inventory.img"));
      taken.sealed.push(await restored(program, images, dir));
    }
    return taken;
  } finally {
    spawnSync("umount", ["--lazy", run]);
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Python, which CRIU's package brings: outside of machines Node has an io_uring, which CRIU cannot dump. */
const HOLD_ALONE = `import os, sys, time
held = os.urandom(${HELD_MB} * 2 ** 20)
open(sys.argv[1] + ".new", "w").write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(3600)`;

async function restored(program: string, images: string, dir: string): Promise<number> {
  const pid_file = join(dir, "pid");
  rmSync(pid_file, { force: true });
  const began = performance.now();
  const options = ["-D", images, "-W", dir, "-d", "--pidfile", pid_file, "-o", "restore.log"];
  const criu: ChildProcess = spawn(program, ["restore", ...options], { stdio: "ignore" });
  const [code] = (await once(criu, "exit")) as [number];
  const taken = performance.now() - began;
  if (code !== 0)
    throw new Error(`CRIU: ${readFileSync(join(dir, "restore.log"), "utf8").split("\n").slice(-4).join(" ")}`);
  const pid = Number(readFileSync(pid_file, "utf8"));
  process.kill(pid, "SIGKILL");
  while (existsSync(`/proc/${pid}/stat`)) await pause(5);
  return taken;
}
