/** Sessions that do nothing: what each takes, and what they cost those that work. */
import { openPostgres } from "#stores/postgres/database.ts";
import type { Report } from "../report.ts";
import { costOf, onServer } from "./server.ts";

/** Sessions of some 2, 9 and 27 processes. */
const SESSIONS = [20, 100, 300];
const READS = 2000;

export async function connections(report: Report): Promise<void> {
  report.section("connections: sessions that are open and do nothing");
  await onServer(async (postgres) => {
    const idle = await openPostgres(postgres.url, { connections: SESSIONS.at(-1) ?? 0, name: "hangar idle" });
    const working = await openPostgres(postgres.url, { connections: 1 });
    let open = 1;
    for (const count of SESSIONS) {
      const before = { kib: postgres.memoryKib(), cpu_ms: (await postgres.used()).cpu_ms, open };
      await hold(idle, count);
      open = count;
      const each = (after: number, was: number): number => (after - was) / (count - before.open);
      const cpu_ms = (await postgres.used()).cpu_ms;
      report.add({
        what: `processor time to open one, up to ${count}`,
        value: each(cpu_ms, before.cpu_ms),
        unit: "ms",
      });
      report.add({ what: `memory of one, up to ${count}`, value: each(postgres.memoryKib(), before.kib), unit: "KiB" });
      const read = await costOf(postgres, READS, () => readAgain(working));
      report.add({ what: `processor time of a read beside ${count} idle ones`, value: read.cpu_ms, unit: "ms" });
    }
    await working.close();
    await idle.close();
  });
}

type Database = Awaited<ReturnType<typeof openPostgres>>;

/** So many calls at once need as many sessions; all wait until the last one has come. */
async function hold(database: Database, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => database.read("SELECT pg_sleep(1)")));
}

async function readAgain(database: Database): Promise<void> {
  for (let index = 0; index < READS; index++) await database.read("SELECT 1 AS one");
}
