/** `hangar db doctor`: checks all nodes of a cluster, and reports problems, risks and remedies. */
import { statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { behind, type NodeInfo, type Survey } from "./survey.ts";

export interface Finding {
  level: "problem" | "warning";
  node: string;
  what: string;
  /** The remedy. */
  do: string;
}

/** Remedies by database state; docs/replication.md has the same table. */
const REMEDIES: Record<string, string> = {
  opening: "wait",
  busy: "end the transaction that holds its write lock",
  full: "make room on the disk",
  damaged:
    "replace it by an intact file: hangar db export it from a replica and import it, or hangar db restore --into",
  missing: "hangar db export it from a replica, and import it",
  replaced: "restart the programs named in the reason",
  kept: "nothing while the primary cannot open it; delete it only if it is gone there for good",
};

const LAG_MS = 1000;
const FREE_PART = 0.1;
const WAL_BYTES = 512 * 1024 * 1024;
/** File systems without working SQLite locks or shared memory, by magic number. */
const BAD_FILE_SYSTEMS: Record<number, string> = { 26985: "NFS", 2035054128: "overlay", 4283649346: "CIFS" };

export function examine({ nodes, primary }: Survey): Finding[] {
  const findings: Finding[] = [];
  const sink: FindingSink = {
    problem: (node, what, remedy) => void findings.push({ level: "problem", node, what, do: remedy }),
    warning: (node, what, remedy) => void findings.push({ level: "warning", node, what, do: remedy }),
  };
  if (!primary) {
    const remedy = "see the logs; hangar db promote NODE --force if it is lost";
    sink.problem("-", "no node is primary: nothing can be written", remedy);
  }
  for (const { hostname, info, problem = "" } of nodes) {
    if (info) examineNode(info, primary, sink);
    else sink.problem(hostname, `does not respond: ${problem}`, "start it, or check why it cannot be reached");
  }
  if (primary) examinePrimary(primary, sink);
  return findings;
}

function examineNode(info: NodeInfo, primary: NodeInfo | undefined, findings: FindingSink): void {
  const { hostname, term, states } = info;
  for (const [name, { state, reason }] of Object.entries(states)) {
    const how = state === "opening" || state === "kept" ? findings.warning : findings.problem;
    how(hostname, `${name} is ${state}: ${reason}`, REMEDIES[state] ?? "see its log");
  }
  if (info === primary || !primary) return;
  if (info.isPrimary) {
    const more = term === primary.term ? "as another one does" : "which is over";
    const remedy = "stop it; check whether --primary and leases are mixed";
    findings.problem(hostname, `says that it is primary of term ${term}, ${more}`, remedy);
  }
  examineReplica(info, primary, findings.warning);
}

interface FindingSink {
  problem: AddFinding;
  warning: AddFinding;
}

type AddFinding = (node: string, what: string, remedy: string) => void;

function examineReplica(info: NodeInfo, primary: NodeInfo, warning: AddFinding): void {
  const connected = primary.replicas.some(({ node }) => node === info.node);
  if (!connected) warning(info.hostname, "does not follow the primary", "see its log: key, address, network");
  const missing = behind(info, primary);
  if (info.lagMs > LAG_MS || (!connected && missing > 0)) {
    warning(
      info.hostname,
      `is ${Math.round(info.lagMs)} ms and ${missing} transactions behind`,
      "is its disk or network too slow?",
    );
  }
  if (primary.ack && !primary.ack.inSync.includes(info.node)) {
    warning(
      info.hostname,
      "is not in sync: it cannot be elected",
      "it joins when it has caught up; is it --no-candidate?",
    );
  }
}

function examinePrimary(primary: NodeInfo, { problem, warning }: FindingSink): void {
  const { ack, replicas, hostname } = primary;
  if (replicas.length === 0) warning(hostname, "has no replica: what it has is on one disk", "start a second node");
  if (ack && ack.inSync.length < ack.replicas) {
    problem(
      hostname,
      `--ack ${ack.mode} needs ${ack.replicas} replicas in sync, and ${ack.inSync.length} are: nothing is acknowledged`,
      "start replicas",
    );
  }
}

/** Checks that need local access. */
export function examineFolder(dir: string, names: readonly string[]): Finding[] {
  const findings: Finding[] = [];
  const add = (level: Finding["level"], what: string, remedy: string): void => {
    findings.push({ level, node: dir, what, do: remedy });
  };
  try {
    const { type, bavail, blocks } = statfsSync(dir);
    const bad = BAD_FILE_SYSTEMS[type];
    if (bad)
      add(
        "problem",
        `is on ${bad}, where SQLite's locks do not work as they must`,
        "use a local file system: ext4, xfs",
      );
    if (bavail / blocks < FREE_PART)
      add("warning", `its disk is ${Math.round(100 - (bavail / blocks) * 100)} % full`, "make room");
    for (const name of names) {
      const size = statSync(join(dir, `${name}-wal`), { throwIfNoEntry: false })?.size ?? 0;
      if (size > WAL_BYTES)
        add(
          "warning",
          `${name}-wal has ${Math.round(size / 2 ** 20)} MiB`,
          "end the reader that keeps it from being copied back",
        );
    }
  } catch (error) {
    add("problem", messageOf(error), "is --dir the node's folder?");
  }
  return findings;
}
