/**
 * Returns the memory of a frozen machine to the host as far as the kernel can: page cache always, anonymous memory
 * where there is swap. The pages are read back on demand after the machine is thawed.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { cgroupDirs, swapProblem } from "../cgroup.ts";
import { RUNC_LIMITS } from "../limits.ts";

/** Amount per request, between checks of the time limit. */
const PIECE = 64 * 1024 * 1024;

export interface Reclaimed {
  before_bytes: number;
  after_bytes: number;
}

/** Never fails: the machine stays suspended even if its memory is not reclaimed. */
export async function reclaimMemory(cgroup: string, clock: Clock): Promise<Reclaimed> {
  const { memory, unified } = cgroupDirs(cgroup);
  if (memory) {
    const used = (): number => numberOf(join(memory, "memory.usage_in_bytes"));
    const before_bytes = used();
    await write(join(memory, "memory.force_empty"), "0");
    return { before_bytes, after_bytes: used() };
  }
  return await reclaimUnified(unified ?? "", clock);
}

async function reclaimUnified(dir: string, clock: Clock): Promise<Reclaimed> {
  const used = (): number => numberOf(join(dir, "memory.current"));
  const before_bytes = used();
  if (swapProblem() === undefined) allow(dir, "max");
  const end = clock.monotonic() + RUNC_LIMITS.reclaim_ms;
  for (let left = before_bytes; left > 0 && clock.monotonic() < end; left -= PIECE) {
    // EAGAIN when less could be reclaimed: the rest stays.
    if (!(await write(join(dir, "memory.reclaim"), String(Math.min(left, PIECE))))) break;
  }
  return { before_bytes, after_bytes: used() };
}

const SWAP_FILE = "memory.swap.max";

/** The machine's swap limit, which is lifted while it is frozen. cgroup v2 only. */
export function swapShare(cgroup: string): string | undefined {
  const { memory, unified } = cgroupDirs(cgroup);
  if (memory || !unified) return undefined;
  try {
    return readFileSync(join(unified, SWAP_FILE), "utf8").trim();
  } catch {
    return undefined;
  }
}

/** Restores the swap limit. Pages beyond it return as they are used. */
export function restoreSwap(cgroup: string, share: string | undefined): void {
  if (share !== undefined) allow(cgroupDirs(cgroup)["unified"] ?? "", share);
}

function allow(dir: string, swap: string): void {
  try {
    writeFileSync(join(dir, SWAP_FILE), swap);
  } catch {
    // The cgroup was removed, or the kernel does not account swap.
  }
}

/** On another thread, because the kernel works synchronously. */
async function write(file: string, value: string): Promise<boolean> {
  try {
    await writeFile(file, value);
    return true;
  } catch {
    return false;
  }
}

function numberOf(file: string): number {
  try {
    return Number(readFileSync(file, "utf8")) || 0;
  } catch {
    return 0;
  }
}
