/** What clients notice of a deploy: requests without a good answer while the code of a running app is replaced. */
import { setTimeout as pause } from "node:timers/promises";
import { failures, wrkLoad, wrkMissing } from "../../test/system/wrk-load.ts";
import type { Report } from "../report.ts";
import type { Engine, Hangar } from "./engines.ts";
import { appName, type Example, writeCode } from "./examples.ts";

const STRATEGIES = ["rolling", "canary", "bluegreen", "immediate"] as const;
const MACHINES = 2;
/** Under load before and after the deploy. */
const QUIET_MS = 1000;

interface Running {
  example: Example;
  folder: string;
  hangar: Hangar;
  podman: Engine;
}

export async function lostRequests(report: Report, { example, folder, hangar, podman }: Running): Promise<void> {
  report.section(`${example.name}: requests lost during a deploy of changed code`);
  const missing = wrkMissing();
  if (missing) return report.skip("requests lost during a deploy", missing);
  await measure(report, {
    what: "podman build, podman rm, podman run",
    url: podman.url(example),
    work: async () => {
      writeCode(folder, example, "replaced");
      await podman.deploy(example, folder);
    },
  });
  await hangar.command(["scale", String(MACHINES), "--app", appName(example)]);
  for (const strategy of STRATEGIES)
    await measure(report, {
      what: `hangar deploy --strategy ${strategy}, ${MACHINES} machines`,
      url: hangar.url(example),
      at_most: 0,
      work: async () => {
        writeCode(folder, example, strategy);
        await hangar.deploy(example, folder, ["--strategy", strategy, "--stable-for", "1s"]);
      },
    });
}

interface Deploy {
  what: string;
  url: string;
  at_most?: number;
  work(): Promise<void>;
}

/** Clients with kept connections, and clients with a new one for each request. */
async function measure(report: Report, { what, url, at_most, work }: Deploy): Promise<void> {
  const { host } = new URL(url);
  const loads = [wrkLoad(url, { host }), wrkLoad(url, { host, close: true })];
  const began = performance.now();
  try {
    await pause(QUIET_MS);
    await work();
    await pause(QUIET_MS);
  } finally {
    const seconds = (performance.now() - began) / 1000;
    const results = await Promise.all(loads.map((load) => load.end()));
    const requests = results.reduce((sum, one) => sum + one.requests, 0);
    const slowest = Math.max(...results.map(({ max_ms }) => max_ms));
    report.add({
      what,
      value: results.reduce((sum, one) => sum + failures(one), 0),
      unit: "lost",
      ...(at_most === undefined ? {} : { at_most }),
      note: `${requests} answered in ${seconds.toFixed(0)} s, the slowest in ${slowest.toFixed(0)} ms`,
    });
  }
}
