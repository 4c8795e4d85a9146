/** Hangar and Podman, each from a folder to a container that answers, with the processor time of all that takes part. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { machinesCgroup } from "#drivers/runtime/runc/delegation.ts";
import { end, until } from "../processes.ts";
import { CpuGroup, groupSeconds } from "./cpu-group.ts";
import { baseImage, type Example } from "./examples.ts";

const HANGAR = join(import.meta.dirname, "../../bin/hangar.mjs");
/** The runtime that we use too; podman's own needs cgroup v2. */
const HOW = ["--runtime", "runc", "--cgroup-manager", "cgroupfs", "--storage-driver", "overlay"];
/** Without these it asks for more than a root without CAP_SYS_RESOURCE can give. */
const LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
/** Podman's port is beside Hangar's. */
const PORT_OFFSET = 100;

export interface Engine {
  readonly name: string;
  /** Makes an OCI archive available as the base of an example. */
  load(example: Example, archive: string): Promise<void>;
  /** Builds the folder and runs the image in place of the last one; what the commands print. */
  deploy(example: Example, folder: string, options?: readonly string[]): Promise<string>;
  url(example: Example): string;
  /** Processor time that was used until now: commands, daemons and containers. */
  cpuSeconds(): number;
  close(): Promise<void>;
}

export class Hangar implements Engine {
  readonly name = "hangar deploy";
  readonly #data: string;
  readonly #group: CpuGroup;
  readonly #server: ChildProcess;

  private constructor(data: string, group: CpuGroup, server: ChildProcess) {
    this.#data = data;
    this.#group = group;
    this.#server = server;
  }

  static async open(dir: string): Promise<Hangar> {
    const data = join(dir, "data");
    const group = new CpuGroup("hangar");
    const [program = "", ...args] = group.inside([HANGAR, "up", "--data-dir", data, "--listen", "127.0.0.1:0"]);
    const hangar = new Hangar(data, group, spawn(program, args, { stdio: "ignore" }));
    await until("the platform", () => hangar.command(["auth", "whoami"]));
    return hangar;
  }

  async load(example: Example, archive: string): Promise<void> {
    await this.command(["images", "import", baseImage(example), archive]);
  }

  /** One strategy and no pause to watch the machine, unless others are asked for: as podman run. */
  deploy(_: Example, cwd: string, options = ["--stable-for", "0s", "--strategy", "immediate"]): Promise<string> {
    return this.command(["deploy", ...options], cwd);
  }

  command(words: readonly string[], cwd?: string): Promise<string> {
    const env = { ...process.env, HANGAR_DATA_DIR: this.#data };
    return command(this.#group.inside([HANGAR, ...words]), { env, ...(cwd === undefined ? {} : { cwd }) });
  }

  url({ port }: Example): string {
    return `http://127.0.0.1:${port}/`;
  }

  /** Containers of machines and builds are in the platform's cgroup. */
  cpuSeconds(): number {
    const node_id = readFileSync(join(this.#data, "node_id"), "utf8").trim();
    return this.#group.seconds() + groupSeconds(machinesCgroup(node_id));
  }

  async close(): Promise<void> {
    await end(this.#server);
    spawnSync(HANGAR, ["down", "--all", "--data-dir", this.#data]);
    this.#group.remove();
  }
}

export class Podman implements Engine {
  readonly name = "podman build, podman run";
  readonly #podman: string[];
  readonly #group = new CpuGroup("podman");

  constructor(dir: string) {
    this.#podman = ["podman", "--root", join(dir, "podman"), "--runroot", join(dir, "podman-run"), ...HOW];
  }

  /** One for each command: a build's container is its parent's cgroup itself, and no child of it. */
  #below(command: string): string[] {
    return ["--cgroup-parent", join(this.#group.path, command)];
  }

  #run(...words: string[]): Promise<string> {
    return command(this.#group.inside([...this.#podman, ...words]));
  }

  async load(example: Example, archive: string): Promise<void> {
    const said = await this.#run("load", "-q", "-i", archive);
    const id = /sha256:[0-9a-f]{64}/.exec(said)?.[0];
    if (!id) throw new Error(`podman load: ${said}`);
    await this.#run("tag", id, baseImage(example));
  }

  async deploy({ name, port }: Example, folder: string): Promise<string> {
    const tag = `localhost/${name}:1`;
    await this.#run("build", ...LIMITS, ...this.#below("build"), "-q", "-t", tag, folder);
    // A container has its port alone: the old one goes before the new one comes.
    await this.#run("rm", "-f", "-i", "-t", "0", name);
    const publish = ["-p", `127.0.0.1:${port + PORT_OFFSET}:8080`];
    return await this.#run("run", ...LIMITS, ...this.#below("run"), "-d", "--name", name, ...publish, tag);
  }

  url({ port }: Example): string {
    return `http://127.0.0.1:${port + PORT_OFFSET}/`;
  }

  cpuSeconds(): number {
    return this.#group.seconds();
  }

  async close(): Promise<void> {
    await this.#run("rm", "-af", "-t", "0");
    await this.#run("system", "reset", "-f");
    this.#group.remove();
  }
}

/** A base of Debian's packages as an OCI archive, which both load. */
export async function writeBase({ name }: Example, file: string): Promise<void> {
  await command([HANGAR, "images", "base", name, "--output", file]);
}

async function command(argv: readonly string[], options: { env?: NodeJS.ProcessEnv; cwd?: string } = {}) {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close") as Promise<[number]>;
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [status] = await ended;
  if (status !== 0) throw new Error(`${argv.join(" ")}: ${stderr || stdout}`);
  return stdout + stderr;
}
