/**
 * What one PostgreSQL carries, each part alone on a server of its own: connections, writes, reads, notifications; what its
 * distance costs requests; then what hosts and machines cost it, on the sim driver. What an operation takes of a processor depends little on what else the box
 * does, so that it says at which size a core is used up. Sizes by flag, and one part of it:
 *
 *   npm run bench database -- --hosts 4 --machines 200 --seconds 20
 *   npm run bench database -- --part writes
 */
import { parseArgs } from "node:util";
import { postgresMissing } from "../test/postgres.ts";
import { type ClusterSizes, hosts, machines } from "./database/cluster.ts";
import { connections } from "./database/connections.ts";
import { distance } from "./database/distance.ts";
import { notifications } from "./database/notifications.ts";
import { reads, writes } from "./database/rows.ts";
import type { Report } from "./report.ts";

/** In this order: the cost of a notification is needed for that of a machine. */
const PARTS = ["connections", "writes", "reads", "notifications", "distance", "hosts", "machines"] as const;
type Part = (typeof PARTS)[number];

export async function run(report: Report): Promise<void> {
  const missing = postgresMissing();
  if (missing) return report.skip("what one PostgreSQL carries", missing);
  const text = { type: "string" } as const;
  const options = { hosts: text, machines: text, seconds: text, part: text };
  const { values } = parseArgs({ options, allowPositionals: true, strict: false });
  const number = (value: unknown, otherwise: number): number => Number(value ?? otherwise);
  const part = values.part as Part | undefined;
  if (part !== undefined && !PARTS.includes(part)) throw new Error(`there is no part ${part}: ${PARTS.join(", ")}`);
  const sizes = {
    hosts: number(values.hosts, 4),
    machines: number(values.machines, 200),
    seconds: number(values.seconds, 20),
  };
  await measureDatabase(report, sizes, part === undefined ? PARTS : [part]);
}

export async function measureDatabase(
  report: Report,
  sizes: ClusterSizes,
  wanted: readonly Part[] = PARTS,
): Promise<void> {
  let heard_ms: number | undefined;
  const measure: Record<Part, () => Promise<void>> = {
    connections: () => connections(report),
    writes: () => writes(report),
    reads: () => reads(report),
    notifications: async () => {
      heard_ms = await notifications(report);
    },
    distance: () => distance(report),
    hosts: () => hosts(report, sizes),
    machines: () => machines(report, sizes, heard_ms),
  };
  for (const part of wanted) await measure[part]();
}
