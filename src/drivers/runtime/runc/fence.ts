/**
 * Stops the machines of this host that others may start when its lease expires, even if our own process was killed,
 * stopped, or is too busy. A second program, the guard, small enough to review at a glance, sleeps until the deadline
 * and then freezes the cgroup around every machine (see enclosure.ts), except those that no other host may start:
 * there is a file for each, and without one a machine is fenced.
 *
 * The deadline is in a file, in milliseconds since the host booted; we write it, the guard reads it. A lock ensures
 * that a host has only one guard. It outlives us, and exits when the cgroup does not exist any more.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Fence } from "#hosts/fence.ts";
import { processesIn } from "./cgroup.ts";
import { isDelegated, outsideUnit } from "./delegation.ts";
import { processCgroup } from "./enclosure.ts";
import { type Layout, layoutOf } from "./layout.ts";
import { kill } from "./process-table.ts";
import { readRecord } from "./record.ts";
import { freezeFile, isFrozen, thawCgroup } from "./suspend/cgroup-freeze.ts";

/** Arguments: the deadline file, the machines' cgroup, the freeze file and its two values, the list of exempt files. */
const GUARD = `exec 9<> "$1.lock" || exit 1
flock -n 9 || exit 0
exec 8<> <(:)
look() {
  read -r up _ < /proc/uptime; now=$((10#\${up/./} * 10))
  until=0; read -r until < "$1" || until=0
  left=$((until - now))
}
each() { for dir in "$1"/*/; do dir=\${dir%/}; [ -e "$4/\${dir##*/}" ] || echo "$3" > "$dir/$2"; done; }
while [ -e "$2" ]; do
  look "$1"
  [ "$until" = -1 ] && { rm -f "$1"; exit; }
  if ((left > 0)); then
    ((left > 1000)) && left=1000
    printf -v nap '%d.%03d' $((left / 1000)) $((left % 1000))
    read -r -t "$nap" -u 8
    continue
  fi
  each "$2" "$3" "$4" "$6"
  # Told otherwise in the meantime by a process that has nothing to put in order first: then everything runs on.
  look "$1"
  if ((left > 0)) && [ ! -e "$1.shut" ]; then each "$2" "$3" "$5" "$6"; continue; fi
  read -r -t 0.2 -u 8
done`;

interface RuncFence extends Fence {
  /** Kills everything in the cgroup, frozen or not, and the guard; for `down`. */
  end(): Promise<void>;
}

interface FenceParts {
  data_dir: string;
  node_id: string;
  clock: Clock;
  log: Log;
}

export function openFence(parts: FenceParts): RuncFence {
  const layout = layoutOf(parts.data_dir, parts.node_id);
  const { cgroup, run, unfenced } = layout;
  const moment = join(run, "lease");
  /** Exists from our freeze until our thaw: the guard must not thaw by itself. */
  const closed = `${moment}.shut`;
  const guard = new Guard(parts, layout, moment);
  return {
    extend: (left_ms) => guard.extend(left_ms),
    async shut() {
      if (!existsSync(run)) return;
      writeFileSync(closed, "");
      const files = machinesIn(cgroup)
        .filter((id) => !existsSync(join(unfenced, id)))
        .map((id) => freezeFile(`${cgroup}/${id}`));
      for (const { file, frozen } of files) write(file, frozen);
      // A large machine takes a moment to freeze.
      for (let tries = 0; tries < SETTLE_TRIES && !files.every(isFrozen); tries++) await parts.clock.sleep(SETTLE_MS);
    },
    async open(removed) {
      // Kills what must not run before thawing: a thawed process handles its signals first.
      for (const id of removed) end(`${cgroup}/${id}`);
      rmSync(closed, { force: true });
      thaw(layout);
    },
    exempt(id) {
      mkdirSync(unfenced, { recursive: true, mode: 0o711 });
      writeFileSync(join(unfenced, id), "");
    },
    include: (id) => rmSync(join(unfenced, id), { force: true }),
    exempted: () => (existsSync(unfenced) ? readdirSync(unfenced) : []),
    async end() {
      await guard.end();
      for (const id of machinesIn(cgroup)) end(`${cgroup}/${id}`);
      for (const file of [closed, unfenced]) rmSync(file, { recursive: true, force: true });
      thaw(layout, true);
    },
  };
}

class Guard {
  readonly #parts: FenceParts;
  readonly #layout: Layout;
  readonly #moment: string;
  #process: ChildProcess | undefined;

  constructor(parts: FenceParts, layout: Layout, moment: string) {
    this.#parts = parts;
    this.#layout = layout;
    this.#moment = moment;
  }

  extend(left_ms: number): void {
    const { node_id } = this.#parts;
    const { cgroup, run, unfenced } = this.#layout;
    // Without its scope no machine runs; the driver creates it before a start.
    if (!isDelegated(node_id)) return;
    const { file, frozen, thawed } = freezeFile(cgroup);
    mkdirSync(dirname(file), { recursive: true });
    mkdirSync(run, { recursive: true, mode: 0o711 });
    this.#setMoment(`${Math.floor(uptime() + left_ms)}`);
    this.#endEarlier();
    // A guard that finds another one running exits at once; we check again at the next heartbeat.
    if (this.#process && this.#process.exitCode === null && this.#process.signalCode === null) return;
    const fields = [this.#moment, dirname(file), basename(file), frozen, thawed, unfenced];
    const [program = "bash", ...args] = outsideUnit(node_id, ["bash", "-c", GUARD, "hangar-guard", ...fields]);
    this.#process = spawn(program, args, { detached: true, stdio: "ignore" });
    this.#process.on("error", (error) =>
      this.#parts.log.error({ error }, "the guard of this host's machines cannot be started"),
    );
    this.#process.unref();
  }

  /** The guard exits when this file says so, and removes it. */
  async end(): Promise<void> {
    this.#endEarlier();
    if (!existsSync(this.#moment)) return;
    this.#setMoment("-1");
    for (let tries = 0; tries < SETTLE_TRIES && existsSync(this.#moment); tries++)
      await this.#parts.clock.sleep(SETTLE_MS);
    rmSync(this.#moment, { force: true });
  }

  /** Atomic, so that the guard never reads a partial value. */
  #setMoment(text: string): void {
    writeFileSync(`${this.#moment}.new`, `${text}\n`);
    renameSync(`${this.#moment}.new`, this.#moment);
  }

  /** Ends the guard of an earlier version, which froze all machines alike and used a file of its own. */
  #endEarlier(): void {
    const earlier = join(this.#layout.run, "fence");
    if (existsSync(earlier)) writeFileSync(earlier, "-1\n");
  }
}

const SETTLE_MS = 10;
const SETTLE_TRIES = 200;

const uptime = (): number => Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;

function machinesIn(cgroup: string): string[] {
  const dir = dirname(freezeFile(cgroup).file);
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

/** Thaws all machines, except those suspended by freezing without an outer cgroup. */
function thaw(layout: Layout, all = false): void {
  const { cgroup } = layout;
  // An earlier version froze them together.
  thawCgroup(cgroup);
  for (const id of machinesIn(cgroup)) {
    const own = `${cgroup}/${id}`;
    const suspended = processCgroup(own) === own && readRecord(layout, id)?.state === "paused";
    if (all || !suspended) thawCgroup(own);
  }
}

/** A machine that ends meanwhile removes its cgroup. */
function write(file: string, value: string): void {
  try {
    writeFileSync(file, value);
  } catch (thrown) {
    if (!["ENOENT", "ENODEV"].includes((thrown as NodeJS.ErrnoException).code ?? "")) throw thrown;
  }
}

/** A suspended machine may be frozen separately; then it could not exit. */
function end(fence_cgroup: string): void {
  const cgroup = processCgroup(fence_cgroup);
  for (const pid of processesIn(cgroup)) kill(pid, "SIGKILL");
  thawCgroup(cgroup);
}
