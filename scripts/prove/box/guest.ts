/** A box that runs: a virtual machine, commands in it, and its end. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type Box, EMULATORS } from "./boxes.ts";
import { type Image, imageOf } from "./image.ts";

export interface Ran {
  status: number;
  stdout: string;
  stderr: string;
}

const LIMITS = {
  /** From power-on until somebody can log in; software emulation on a busy host takes minutes. */
  boot_ms: 60 * 60_000,
  look_ms: 1000,
  /** Installing the packages takes longer than half an hour in a box that gets a fifth of a processor. */
  command_ms: 2 * 60 * 60_000,
  connect_s: 600,
  /** A kernel that really runs says its first word within this; else the processor is emulated. */
  first_word_ms: 40_000,
} as const;

const MEMORY_MIB = 3072;

export class Guest {
  readonly #dir: string;
  readonly #image: Image;
  readonly #port: number;
  /** Whether the processor runs it, or software. */
  readonly accelerated: boolean;
  /** Undefined for one that was running before. */
  readonly #qemu: ChildProcess | undefined;

  private constructor(parts: {
    dir: string;
    image: Image;
    port: number;
    accelerated: boolean;
    qemu: ChildProcess | undefined;
  }) {
    this.#dir = parts.dir;
    this.#image = parts.image;
    this.#port = parts.port;
    this.accelerated = parts.accelerated;
    this.#qemu = parts.qemu;
  }

  /**
   * Boots a fresh box; what is written to its disk is gone with it. HANGAR_BOX_PORT names the SSH port of a box that runs
   * already, for whoever writes such tests: it is taken as it is, and left so.
   */
  static async boot(box: Box, say: (text: string) => void): Promise<Guest> {
    const image = imageOf(box, say);
    const running = Number(process.env["HANGAR_BOX_PORT"] ?? 0);
    if (running > 0) {
      const dir = mkdtempSync(join(tmpdir(), "hangar-guest-"));
      return new Guest({ dir, image, port: running, accelerated: false, qemu: undefined });
    }
    for (const accelerated of accelerations()) {
      const guest = await Guest.#start(image, accelerated);
      if (accelerated && !(await guest.#speaks())) {
        await guest.close();
        continue;
      }
      say(`booting ${box.title}${accelerated ? "" : " in software emulation: everything takes ten times as long"} …`);
      await guest.reachable();
      return guest;
    }
    throw new Error("the box did not start");
  }

  static async #start(image: Image, accelerated: boolean): Promise<Guest> {
    const dir = mkdtempSync(join(tmpdir(), "hangar-guest-"));
    const port = await freePort();
    const { qemu: program = "", flags = [], console = "" } = EMULATORS[process.arch] ?? {};
    const options: Record<string, string> = {
      // One emulated processor: with two in threads of their own, QEMU 7.2 runs stale code after the guest's kernel patched
      // itself, and the guest panics (int3 in __schedule) about once an hour.
      ...(accelerated ? { accel: "kvm", smp: "2" } : { accel: "tcg,thread=single", smp: "1" }),
      m: String(MEMORY_MIB),
      serial: "stdio",
      kernel: image.kernel,
      initrd: image.initrd,
      append: `root=/dev/vda rw console=${console} panic=5`,
      drive: `file=${image.disk},if=virtio,format=raw,snapshot=on`,
      nic: `user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:${port}-:22`,
    };
    const named = Object.entries(options).flatMap(([name, value]) => [`-${name}`, value]);
    const args = ["-nographic", "-nodefaults", ...flags, ...named];
    const log = openSync(join(dir, "console.log"), "w");
    // What is written goes to a file beside the image that has no name: it is gone when QEMU is.
    const qemu = spawn(program, args, { stdio: ["ignore", log, log], env: { ...process.env, TMPDIR: dir } });
    prefer(qemu.pid);
    const guest = new Guest({ dir, image, port, accelerated, qemu });
    process.once("exit", guest.#kill);
    return guest;
  }

  readonly #kill = (): void => void this.#qemu?.kill("SIGKILL");

  #hasEnded(): boolean {
    return this.#qemu !== undefined && (this.#qemu.exitCode !== null || this.#qemu.signalCode !== null);
  }

  async #speaks(): Promise<boolean> {
    const log = join(this.#dir, "console.log");
    for (let waited = 0; waited < LIMITS.first_word_ms; waited += LIMITS.look_ms) {
      if (/Linux version/.test(readFileSync(log, "utf8"))) return true;
      if (this.#hasEnded()) return false;
      await sleep(LIMITS.look_ms);
    }
    return false;
  }

  /** Waits until one can log in and everything that starts at boot has started. */
  async reachable(): Promise<void> {
    const end = performance.now() + LIMITS.boot_ms;
    for (;;) {
      const { stdout } = await this.run("systemctl is-system-running", { limit_ms: 60_000 });
      if (/^(running|degraded)/.test(stdout)) return;
      if (this.#hasEnded() || performance.now() > end) throw new Error(`no box came up:\n${this.console()}`);
      await sleep(LIMITS.look_ms);
    }
  }

  /** Boots it again, as a person would, and waits until it is there. Answers how long it took, in seconds. */
  async reboot(): Promise<number> {
    const began = performance.now();
    const boot = (await this.must("cat /proc/sys/kernel/random/boot_id")).trim();
    await this.run("systemctl reboot");
    const end = performance.now() + LIMITS.boot_ms;
    for (let id = boot; id === boot || id === ""; ) {
      if (performance.now() > end) throw new Error(`it did not boot again:\n${this.console()}`);
      await sleep(LIMITS.look_ms);
      id = (await this.run("cat /proc/sys/kernel/random/boot_id", { limit_ms: 60_000 })).stdout.trim();
    }
    await this.reachable();
    return (performance.now() - began) / 1000;
  }

  /** Runs a bash script as root in the box. */
  async run(script: string, { limit_ms = LIMITS.command_ms, input = "" as string | Buffer } = {}): Promise<Ran> {
    const child = spawn(
      "ssh",
      [...this.#ssh(), "-p", String(this.#port), "root@127.0.0.1", "bash", "-c", quoted(script)],
      {
        stdio: ["pipe", "pipe", "pipe"],
        timeout: limit_ms,
      },
    );
    child.stdin.on("error", () => {}).end(input);
    const exited = once(child, "exit") as Promise<[number | null]>;
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const [status] = await exited;
    return { status: status ?? -1, stdout, stderr };
  }

  /** The same, which must go well; answers what it printed. */
  async must(script: string, how: { limit_ms?: number; input?: string | Buffer } = {}): Promise<string> {
    const { status, stdout, stderr } = await this.run(`set -euo pipefail\n${script}`, how);
    if (status !== 0)
      throw new Error(`in the box, exit ${status}: ${script}\n${stdout.slice(-4000)}\n${stderr.slice(-4000)}`);
    return stdout;
  }

  async put(file: string, path: string): Promise<void> {
    await this.must(`cat > ${quoted(path)}`, { input: readFileSync(file) });
  }

  /** The last of what its console showed. */
  console(): string {
    const log = join(this.#dir, "console.log");
    return existsSync(log) && statSync(log).size > 0 ? readFileSync(log, "utf8").slice(-4000) : "nothing was shown";
  }

  async close(): Promise<void> {
    process.off("exit", this.#kill);
    if (this.#qemu && !this.#hasEnded()) {
      const exited = once(this.#qemu, "exit");
      this.#qemu.kill("SIGKILL");
      await exited;
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #ssh(): string[] {
    const options = {
      StrictHostKeyChecking: "no",
      UserKnownHostsFile: "/dev/null",
      LogLevel: "ERROR",
      ConnectTimeout: String(LIMITS.connect_s),
      ServerAliveInterval: "60",
      ServerAliveCountMax: String(LIMITS.connect_s / 60),
      BatchMode: "yes",
    };
    return ["-i", this.#image.key, ...Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`])];
  }
}

/** HANGAR_BOX_ACCEL=tcg skips the look whether the processor can; a host may have KVM that runs nothing. */
function accelerations(): boolean[] {
  const acceleration = process.env["HANGAR_BOX_ACCEL"];
  if (acceleration === "tcg" || !existsSync("/dev/kvm")) return [false];
  return acceleration === "kvm" ? [true] : [true, false];
}

/**
 * HANGAR_BOX_NICE=-15 gives the box a processor on a host that is busy with other things. Where the kernel groups processes
 * by session (autogroup), a nice value counts inside of a session alone, and the session has one of its own.
 */
function prefer(pid: number | undefined): void {
  const nice = Number(process.env["HANGAR_BOX_NICE"] ?? 0);
  if (pid === undefined || nice === 0) return;
  setPriority(pid, nice);
  const session = `/proc/${pid}/autogroup`;
  if (existsSync(session)) writeFileSync(session, String(nice));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

export const quoted = (argument: string): string => `'${argument.replaceAll("'", "'\\''")}'`;
