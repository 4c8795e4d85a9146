/**
 * What stops all machines of this host when its lease is over, whatever became of our own process: killed, stopped,
 * or too busy to look. A second program, small enough to read at one sight, sleeps until the moment up to which things
 * may run and then freezes the cgroup that all machines are in. What is started in a frozen cgroup is born frozen, so
 * a start that was on its way does no harm either.
 *
 * The moment stands in a file, in milliseconds since the box was started; we write it, the guard reads it. The guard
 * is the only one of its host (a lock sees to that), outlives us, and goes when there is no cgroup any more.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Fence } from "#hosts/fence.ts";
import { processesIn } from "./cgroup.ts";
import { freezeFile, isFrozen, thawCgroup } from "./cgroup-freeze.ts";
import { isDelegated, outsideUnit } from "./delegation.ts";
import { layoutOf } from "./layout.ts";
import { kill } from "./process-table.ts";

const GUARD = `exec 9<> "$1.lock" || exit 1
flock -n 9 || exit 0
exec 8<> <(:)
look() {
  read -r up _ < /proc/uptime; now=$((10#\${up/./} * 10))
  until=0; read -r until < "$1" || until=0
  left=$((until - now))
}
while [ -e "$2" ]; do
  look "$1"
  [ "$until" = -1 ] && { rm -f "$1"; exit; }
  if ((left > 0)); then
    ((left > 1000)) && left=1000
    printf -v nap '%d.%03d' $((left / 1000)) $((left % 1000))
    read -r -t "$nap" -u 8
    continue
  fi
  echo "$3" > "$2"
  # Told otherwise in the meantime: whoever did so has let everything run already.
  look "$1"
  if ((left > 0)); then echo "$4" > "$2"; continue; fi
  read -r -t 0.2 -u 8
done`;

interface RuncFence extends Fence {
  /** Everything below is killed, frozen or not, and the guard with it; for a platform that is taken down. */
  end(): Promise<void>;
}

export function openFence(parts: { data_dir: string; node_id: string; clock: Clock; log: Log }): RuncFence {
  const { cgroup, run } = layoutOf(parts.data_dir, parts.node_id);
  const freezing = freezeFile(cgroup);
  const { file, frozen, thawed } = freezing;
  const moment = join(run, "fence");
  let guard: ChildProcess | undefined;
  const uptime = (): number => Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;
  const set = (word: string): void => {
    if (!isDelegated(parts.node_id)) return;
    // The cgroup goes with the last machine, when the platform is taken down; then there is nothing to stop.
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, word);
  };
  return {
    extend(left_ms) {
      // Without its scope no machine runs; the driver asks for it before it starts one.
      if (!isDelegated(parts.node_id)) return;
      mkdirSync(join(file, ".."), { recursive: true });
      mkdirSync(run, { recursive: true, mode: 0o711 });
      // All or nothing, so that the guard never reads half of one.
      writeFileSync(`${moment}.new`, `${Math.floor(uptime() + left_ms)}\n`);
      renameSync(`${moment}.new`, moment);
      // One that finds another at work, of an earlier process of ours, goes at once; we ask again at the next beat.
      if (guard && guard.exitCode === null && guard.signalCode === null) return;
      const words = ["bash", "-c", GUARD, "hangar-guard", moment, file, frozen, thawed];
      const [program = "bash", ...args] = outsideUnit(parts.node_id, words);
      guard = spawn(program, args, { detached: true, stdio: "ignore" });
      guard.on("error", (error) => parts.log.error({ error }, "the guard of this host's machines cannot be started"));
      guard.unref();
    },
    async shut() {
      if (existsSync(file)) set(frozen);
      // A large machine takes a moment to stand still.
      for (let tries = 0; tries < SETTLE_TRIES && !isFrozen(freezing); tries++) await parts.clock.sleep(SETTLE_MS);
    },
    async open(gone) {
      // What must not run any more is dead before it is let go: a process that is thawed meets its signals first.
      for (const id of gone) end(`${cgroup}/${id}`);
      set(thawed);
    },
    async end() {
      if (!existsSync(moment)) return;
      // The guard, if there is one, takes this for its own end and takes the file with it.
      writeFileSync(moment, "-1\n");
      for (let tries = 0; tries < SETTLE_TRIES && existsSync(moment); tries++) await parts.clock.sleep(SETTLE_MS);
      rmSync(moment, { force: true });
      for (const entry of readdirSync(join(file, ".."), { withFileTypes: true }))
        if (entry.isDirectory()) end(`${cgroup}/${entry.name}`);
      set(thawed);
    },
  };
}

const SETTLE_MS = 10;
const SETTLE_TRIES = 200;

/** A machine may be frozen by itself as well, because it is suspended: then it would not end. */
function end(cgroup: string): void {
  for (const pid of processesIn(cgroup)) kill(pid, "SIGKILL");
  thawCgroup(cgroup);
}
