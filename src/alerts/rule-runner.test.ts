import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { until } from "../../test/support.ts";
import { ALERT_LIMITS } from "./limits.ts";
import { RuleRunner } from "./rule-runner.ts";
import type { StoredRuleFile } from "./store.ts";

const NOTHING = new TextEncoder().encode('{"data":{"resultType":"vector","result":[]}}');

const fileOf = (org_id: string, groups: number): StoredRuleFile => ({
  org_id,
  name: "rules",
  app_id: null,
  app_name: null,
  dialect: "promql",
  updated_at: 1,
  content: JSON.stringify({
    groups: Array.from({ length: groups }, (_, i) => ({
      name: `g${i}`,
      interval: "1s",
      rules: [{ record: `a:${i}`, expr: "x" }],
    })),
  }),
});

test("rules of one organization whose queries never end leave slots to those of others (org_queries_at_once)", async (t) => {
  const files = [fileOf("hostile", 50), fileOf("quiet", 1)];
  const held: (() => void)[] = [];
  const asked = new Map<string, number>();
  const runner = new RuleRunner({
    store: {
      ruleFiles: async (org_id) => files.filter((file) => file.org_id === org_id),
      findRuleFile: async () => undefined,
      ruleFileVersions: async () => files,
      putRuleFile: async () => true,
      deleteRuleFile: async () => true,
      claim: async () => true,
      release: async () => {},
      states: async () => [],
      putState: async () => true,
    },
    orgs: async () => ["hostile", "quiet"].map((id) => ({ id, slug: id })),
    engine: () => ({
      append: async () => ({ samples: 0, dropped: 0, problems: [], problem_count: 0 }),
      async query(org) {
        asked.set(org, (asked.get(org) ?? 0) + 1);
        if (org === "hostile") await new Promise<void>((resolve) => held.push(resolve));
        return NOTHING;
      },
    }),
    hasMetrics: () => false,
    dialects: true,
    is_shared: false,
    runner: "n1",
    external_url: () => "",
    clock: systemClock,
    log: silentLog,
    changed: () => {},
  });
  runner.start();
  t.after(async () => {
    const closed = runner.close();
    let open = true;
    void closed.then(() => {
      open = false;
    });
    while (open) {
      for (const end of held.splice(0)) end();
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  const { org_queries_at_once } = ALERT_LIMITS;
  await until("all slots of the hostile organization are taken", () => asked.get("hostile") === org_queries_at_once);
  await until("the other one is evaluated again and again", () => (asked.get("quiet") ?? 0) >= 3);
  assert.equal(asked.get("hostile"), org_queries_at_once);
});
