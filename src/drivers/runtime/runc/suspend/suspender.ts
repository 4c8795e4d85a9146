/**
 * Selects the kind of suspend of a host. A snapshot by CRIU when that works, probed by suspending a small machine of an
 * installation of its own, with a listener, a connection and a process that is not root. A successful probe is stored
 * with the versions it was made with, so that it runs once and not at every start. Otherwise, and for a machine that
 * CRIU refuses, the machine is frozen in memory.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import {
  type Capabilities,
  type Launch,
  type Lost,
  type Ref,
  type Started,
  type Suspended,
  SuspendRefused,
} from "#machines/runtime/driver.ts";
import { lxcfsMissing } from "../../../choice.ts";
import { type Criu, openCriu } from "../../../freeze/criu.ts";
import { program } from "../../../linux/program.ts";
import type { ContainerManager } from "../container-manager.ts";
import { nativeProgram } from "../native-programs.ts";
import { freezeProblem } from "./cgroup-freeze.ts";
import { pause, unpause } from "./pause.ts";
import { resume, type SuspendParts, suspend } from "./suspend.ts";

const SHIM = nativeProgram("criu-shim.so");

interface Verdict {
  /** The versions that the result applies to. */
  of: string;
  /** Why it does not work; empty when it does. */
  problem: string;
}

export type SuspendProbe = (parts: Omit<SuspendParts, "containers">) => Promise<void>;

export class Suspender {
  readonly #containers: ContainerManager;
  readonly #try: SuspendProbe;
  readonly #file: string;
  readonly #mode: "auto" | "freeze";
  #finding: Promise<SuspendParts | undefined> | undefined;
  #opening: Promise<SuspendParts> | undefined;
  /** Why there are no snapshots on this host. */
  #problem: string | undefined;

  constructor(containers: ContainerManager, trial: SuspendProbe, mode: "auto" | "freeze" = "auto") {
    this.#containers = containers;
    this.#mode = mode;
    if (mode === "freeze") this.#problem = "set so (suspend = freeze)";
    this.#try = trial;
    this.#file = join(containers.parts.layout.data, "suspend.json");
  }

  /** Until known otherwise a host supports snapshots: a failing suspend reports it. */
  capabilities(): Capabilities {
    const [no_snapshot, no_freeze] = [this.#problem, freezeProblem()];
    if (no_snapshot === undefined) return { suspend: "snapshot" };
    if (no_freeze === undefined) return { suspend: "freeze", suspend_reason: no_snapshot };
    return { suspend: false, suspend_reason: `${no_snapshot}; ${no_freeze}` };
  }

  /** Fails with `SuspendRefused`, leaving the machine running, when it can be neither snapshotted nor frozen. */
  async suspend(ref: Ref, signal: AbortSignal): Promise<Suspended> {
    signal.throwIfAborted();
    try {
      return await suspend(await this.#parts(), ref, signal);
    } catch (thrown) {
      if (!(thrown instanceof SuspendRefused)) throw thrown;
      signal.throwIfAborted();
      return await pause(this.#containers, ref, thrown.message);
    }
  }

  /** Tools for a snapshot. Fails with the reason when this host has none. */
  async #parts(): Promise<SuspendParts> {
    if (this.#mode === "freeze") return this.#refuse(this.#problem ?? "");
    this.#opening ??= this.#open();
    return await this.#opening;
  }

  /**
   * Does not depend on the probe's result: an unusable snapshot shows by itself, and a probe may fail temporarily.
   * Without CRIU the snapshot is dropped.
   */
  async resume(launch: Launch, signal: AbortSignal): Promise<Started | Lost> {
    signal.throwIfAborted();
    const unpaused = await unpause(this.#containers, launch);
    if (unpaused) return unpaused;
    const parts = await this.#tools();
    if (parts) return await resume(parts, launch, signal);
    const record = this.#containers.read(launch.id);
    if (record?.boot === launch.boot && record.state === "frozen") await this.#containers.dropSnapshot(launch.id);
    return { lost: "the snapshot could not be used: CRIU is not installed any more" };
  }

  /** Undefined without CRIU. Cached, so that a resume does not wait for version queries. */
  #tools(): Promise<SuspendParts | undefined> {
    this.#finding ??= this.#find();
    return this.#finding;
  }

  async #find(): Promise<SuspendParts | undefined> {
    const { layout, runc } = this.#containers.parts;
    const criu = await openCriu(join(layout.data, "bin"), SHIM, layout.run);
    if (!criu) return undefined;
    const runc_version = /version (\S+)/.exec(await program(runc, ["--version"]))?.[1] ?? "unknown";
    return { containers: this.#containers, criu, runc_version };
  }

  async #open(): Promise<SuspendParts> {
    const parts = await this.#tools();
    if (!parts) return this.#refuse("CRIU is not installed (apt-get install criu)");
    const problem = await this.#verdict(parts.criu, parts.runc_version);
    if (problem === "") return parts;
    const { log } = this.#containers.parts;
    log.warn({ problem }, "there are no snapshots on this host: suspended machines are frozen in memory");
    return this.#refuse(problem);
  }

  #refuse(problem: string): never {
    this.#problem = problem;
    throw new SuspendRefused(problem);
  }

  async #verdict(criu: Criu, runc_version: string): Promise<string> {
    const shim = createHash("sha256").update(readFileSync(SHIM)).digest("hex").slice(0, 12);
    const lxcfs = lxcfsMissing() ? "no lxcfs" : "lxcfs";
    const of = `kernel ${release()}, criu ${criu.version}, runc ${runc_version}, ${lxcfs}, shim ${shim}`;
    const known = this.#remembered();
    // A failure may have been temporary: this process probes again.
    if (known?.of === of && known.problem === "") return "";
    const problem = await this.#try({ criu, runc_version }).then(
      () => "",
      (thrown: unknown) => messageOf(thrown),
    );
    mkdirSync(join(this.#file, ".."), { recursive: true });
    writeFileSync(this.#file, JSON.stringify({ of, problem } satisfies Verdict));
    return problem;
  }

  #remembered(): Verdict | undefined {
    try {
      return JSON.parse(readFileSync(this.#file, "utf8")) as Verdict;
    } catch {
      return undefined;
    }
  }
}
