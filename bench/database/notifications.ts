/** LISTEN and NOTIFY: every process reads every notification. */
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { openPostgresNotifier } from "#stores/postgres/notifier.ts";
import type { Report } from "../report.ts";
import { onServer, type Postgres } from "./server.ts";

const WORDS = 400;
const LISTENERS = [1, 32, 128];

/** Answers what one more process that listens costs the server for each notification. */
export async function notifications(report: Report): Promise<number> {
  report.section("notifications: one that every process reads");
  return await onServer((postgres) => ofListeners(report, postgres));
}

async function ofListeners(report: Report, postgres: Postgres): Promise<number> {
  const { url } = postgres;
  const parts = { clock: systemClock, log: silentLog };
  const costs: number[] = [];
  for (const count of LISTENERS) {
    const all = await Promise.all(Array.from({ length: count }, () => openPostgresNotifier(url, parts)));
    const sender = await openPostgresNotifier(url, parts);
    const before = { server: await postgres.used(), own: process.cpuUsage() };
    const began = performance.now();
    for (let word = 0; word < WORDS; word++) await heardByAll(all, () => sender.send("machines", String(word)));
    const seconds = (performance.now() - began) / 1000;
    const own = process.cpuUsage(before.own);
    const cpu_ms = ((await postgres.used()).cpu_ms - before.server.cpu_ms) / WORDS;
    costs.push(cpu_ms);
    report.add({ what: `processor time of PostgreSQL, ${count} processes`, value: cpu_ms, unit: "ms" });
    const heard = (own.user + own.system) / 1000 / WORDS / count;
    report.add({ what: `processor time of a process that hears it, ${count} processes`, value: heard, unit: "ms" });
    report.add({
      what: `notifications a second, one after the other, ${count} processes`,
      value: WORDS / seconds,
      unit: "/s",
    });
    await Promise.all([sender, ...all].map((one) => one.close()));
  }
  const [least = 0, most = 0] = [costs[0], costs.at(-1)];
  const each = (most - least) / ((LISTENERS.at(-1) ?? 0) - (LISTENERS[0] ?? 0));
  report.add({ what: "processor time of PostgreSQL for one more process", value: each, unit: "ms" });
  return each;
}

async function heardByAll(
  all: readonly Awaited<ReturnType<typeof openPostgresNotifier>>[],
  send: () => void,
): Promise<void> {
  const heard = all.map(
    (one) =>
      new Promise<void>((resolve) => {
        const end = one.listen("machines", () => {
          end();
          resolve();
        });
      }),
  );
  send();
  await Promise.all(heard);
}
