/** Kernel objects of an installation for display: for `down --all` and `doctor`. */
import type { DownReport, Holder, KernelInventory, KernelObject } from "#core/kernel-objects.ts";
import { count } from "#core/words.ts";
import type { Finding } from "./finding.ts";

/** The kinds of kernel objects that are checked. */
const LOOKED_AT =
  "processes, mounts in every mount namespace, loop devices, mapped devices, network devices, nftables tables, cgroups";

const isEmpty = ({ objects, problems }: DownReport): boolean => objects.length === 0 && problems.length === 0;

export const exitOfDown = (report: DownReport): number => (isEmpty(report) ? 0 : 1);

export function downText(report: DownReport): string {
  const { machines, volumes, objects, unseen, problems, data_dir } = report;
  const ended = `Stopped ${count(machines, "machine")}, closed ${count(volumes, "volume")}. Disks stay in ${data_dir}.`;
  const blind = unseen.map((what) => `Not checked: ${what}.`);
  if (isEmpty(report)) return [ended, ...blind, nothingLeft(unseen)].join("\n");
  const left = objects.length > 0 ? `Left in the kernel: ${count(objects.length, "object")} of this installation.` : "";
  const advice =
    holdersOf(objects).size > 0 ? "End the processes that hold them, then run `hangar down --all` again." : "";
  const lines = [
    ended,
    ...problems.map((problem) => `Failed: ${problem}.`),
    ...blind,
    left,
    ...objects.map(line),
    advice,
  ];
  return lines.filter(Boolean).join("\n");
}

const nothingLeft = (unseen: readonly string[]): string =>
  unseen.length === 0
    ? `Nothing of this installation is left in the kernel (checked: ${LOOKED_AT}).`
    : "In everything that could be checked, nothing of this installation is left in the kernel.";

function line({ kind, name, of, held_by }: KernelObject): string {
  const holders = held_by.map((holder) => `\n    held by ${named(holder)}: it ${holder.how}`);
  return `  ${kind} ${name}${of ? ` (${of})` : ""}${holders.join("")}`;
}

const named = ({ pid, command }: Pick<Holder, "pid" | "command">): string => `pid ${pid} (${command})`;

/** Devices come first: their backing files identify best what is held. */
const shown = ({ kind, name, of }: KernelObject): string =>
  `${kind} ${name}${of && kind !== "mount" ? ` (${of})` : ""}`;
const SHOWN = 6;

function holdersOf(objects: readonly KernelObject[]): Map<number, { holder: Holder; held: string[] }> {
  const found = new Map<number, { holder: Holder; held: string[] }>();
  const ordered = objects.toSorted((a, b) => Number(a.kind === "mount") - Number(b.kind === "mount"));
  for (const object of ordered)
    for (const holder of object.held_by) {
      const one = found.get(holder.pid) ?? { holder, held: [] };
      one.held.push(shown(object));
      found.set(holder.pid, one);
    }
  return found;
}

const listed = (names: readonly string[]): string =>
  names.length <= SHOWN ? names.join(", ") : `${names.slice(0, SHOWN).join(", ")} and ${names.length - SHOWN} more`;

/** One finding for each foreign process that holds kernel objects, or a single `ok`. */
export function kernelFindings({ objects, unseen }: KernelInventory, platform_runs: boolean): Finding[] {
  const what = "kernel objects";
  const held = [...holdersOf(objects).values()].map(
    ({ holder, held: list }): Finding => ({
      what,
      verdict: "warn",
      found: `${named(holder)} holds ${listed(list)}: it ${holder.how}`,
      mend: `end or restart that program (kill ${holder.pid})`,
    }),
  );
  const blind = unseen.map((found): Finding => ({ what, verdict: "warn", found: `not checked: ${found}` }));
  const orphaned = objects.length > 0 && !platform_runs && !objects.some(({ kind }) => kind === "process");
  const left: Finding = {
    what,
    verdict: "warn",
    found: `${count(objects.length, "object")} left of a platform that does not run: ${listed(objects.map(shown))}`,
    mend: "hangar down --all",
  };
  const fine: Finding = { what, verdict: "ok", found: "no other process holds mounts or devices of this platform" };
  const findings = [...held, ...(orphaned ? [left] : []), ...blind];
  return findings.length > 0 ? findings : [fine];
}
