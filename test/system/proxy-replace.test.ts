/** One platform takes the place of another while requests come: none of them may fail. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { freePort } from "#proxy/fixtures.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { runs, tempDir } from "../support.ts";
import { startProgram } from "./child.ts";
import { startDaemon } from "./daemon.ts";
import { until } from "./edge-proxy-harness.ts";
import { nodeIdOf } from "./leaks.ts";
import { load } from "./load.ts";

suite("replacing the platform process", { skip: realMachinesMissing() }, () => {
  test("`replace` under load interrupts no machine and fails no request", async (t) => {
    const data_dir = tempDir();
    // Registered first, so run first: what runs is ended before its remains are taken away.
    const ends: (() => unknown)[] = [];
    t.after(async () => {
      for (const end of ends) await end();
      if (existsSync(join(data_dir, "node_id")))
        await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
    });
    const later = { after: (end: () => unknown) => void ends.push(end) };
    const old = await startDaemon(later, data_dir, ["--driver", "runc"]);
    const port = await freePort();
    await old.call("POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    await old.call("POST", "/v1/apps/web/ip_assignments", { type: "shared_v4" });
    const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port, handlers: ["http"] }] }];
    const config = { image: "hangar/hello", guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 }, services };
    const { body } = await old.call("POST", "/v1/apps/web/machines", { config });
    await old.call("GET", `/v1/apps/web/machines/${String(body["id"])}/wait?state=started`);
    const count = async (): Promise<number> => {
      const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { accept: "application/json" } });
      return ((await answer.json()) as { requests: number }).requests;
    };
    await until(() =>
      count().then(
        () => true,
        () => false,
      ),
    );
    const clients = load(t, port, 8);
    let ended = old.child.ended;
    for (let i = 0; i < runs(1, 5); i++) {
      const args = ["replace", "--data-dir", data_dir, "--listen", "127.0.0.1:0", "--driver", "runc"];
      const fresh = startProgram(later, "src/main.ts", args);
      await fresh.until(/ is ready /);
      await ended;
      ended = fresh.ended;
      const before = clients.count;
      await until(() => clients.count > before + 100);
    }
    await clients.end();
    assert.deepEqual(clients.failures, []);
    // The same program all the time: it counts in memory.
    assert.ok((await count()) >= clients.count);
    t.diagnostic(`${clients.count} requests, none failed`);
  });
});
