import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { PROXY_LIMITS } from "./limits.ts";
import { type StatusParts, statusRoutes } from "./status-routes.ts";

const machine = (n: number, state: string, host_id = "0001") => ({
  app_id: "a",
  id: `m${n}`,
  name: `m${n}`,
  state,
  host_id,
  region: "local",
  cordoned: false,
  checks: {},
  events: [],
  config: {},
});

suite("status of an app with many machines", () => {
  test("the status counts all machines, checks the failed and the oldest, and says so", async () => {
    const { status_machines } = PROXY_LIMITS;
    const limits: unknown[] = [];
    const parts = {
      store: {
        async oldestOfEach(_: unknown, { states, limit }: { states?: string[]; limit: number }) {
          limits.push(limit);
          if (states) return [machine(7000, "failed")];
          return Array.from({ length: limit }, (_one, n) => machine(n, "started"));
        },
        stateCounts: async () => [
          { app_id: "a", state: "started", host_id: "0001", machines: 9000 },
          { app_id: "a", state: "started", host_id: "0002", machines: 999 },
          { app_id: "a", state: "failed", host_id: "0001", machines: 1 },
        ],
      },
      releases: { newestOfEach: async () => [] },
      listening: { reason: async () => undefined },
      clock: { now: () => 0 },
      urls: () => [],
      hostStatus: (id: string) => (id === "0002" ? "unreachable" : "ok"),
    };
    const [row] = statusRoutes(parts as unknown as StatusParts);
    const status = (await row?.handle({ app: { id: "a", name: "web" } } as never)) as Record<string, unknown>;
    assert.deepEqual(limits, [status_machines, status_machines], "never all of them");
    assert.deepEqual(status["machines"], { started: 9000, unreachable: 999, failed: 1 });
    assert.equal(status["state"], "degraded");
    assert.match(String(status["reason"]), /m7000: .*\(1001 of 10000 machines checked: the failed and the oldest\)$/);
  });
});
