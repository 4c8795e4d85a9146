import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { leaseStoreSuite } from "./lease-store.suite.ts";
import { SqliteLeases } from "./sqlite-leases.ts";

leaseStoreSuite("SQLite", 10_000, async () => {
  const dir = await mkdtemp(join(tmpdir(), "hangar-lease-"));
  let now_ms = 1_700_000_000_000;
  const clock = { now: () => now_ms, monotonic: () => now_ms, sleep: () => Promise.resolve() };
  const [a, b] = [new SqliteLeases(join(dir, "lease.db"), clock), new SqliteLeases(join(dir, "lease.db"), clock)];
  return {
    a,
    b,
    pass: (ms) => {
      now_ms += ms;
      return Promise.resolve();
    },
    close: async () => {
      await a.close();
      await b.close();
      rmSync(dir, { recursive: true });
    },
  };
});
