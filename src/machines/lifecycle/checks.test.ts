import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { MACHINE_LIMITS } from "../limits.ts";
import { MachineHarness, turns } from "../machine-harness.fixtures.ts";
import type { CheckStatus } from "../types.ts";

const EVERY_MS = 5000;
const checks = { web: { type: "tcp" as const, port: 80, interval: "5s" } };

/** A machine with a check that answers what `result` is at the time. */
async function checked(result: { passing: boolean; output: string }) {
  const harness = await MachineHarness.open({
    wrapDriver: (driver) => Object.assign(driver, { probe: async () => ({ ...result }) }),
  });
  const { id } = await harness.create({ checks });
  await harness.settle();
  const look = async (): Promise<CheckStatus & { revision: number }> => {
    await harness.clock.advance(EVERY_MS);
    await turns(8);
    const machine = await harness.find(id);
    const found = machine.checks["web"];
    assert.ok(found, "the check has run");
    return { ...found, revision: machine.revision };
  };
  return { harness, look };
}

suite("health checks", () => {
  test("a failing check shows its newest output; updated_at is the time of the last change of status", async () => {
    const result = { passing: false, output: "connection refused" };
    const { harness, look } = await checked(result);
    const first = await look();
    assert.deepEqual([first.status, first.output], ["critical", "connection refused"]);
    assert.equal((await look()).revision, first.revision, "the same again is not written");
    result.output = "HTTP 503: the database is away";
    const second = await look();
    assert.deepEqual([second.output, second.updated_at], [result.output, first.updated_at]);
    result.passing = true;
    result.output = "HTTP 200";
    const third = await look();
    assert.deepEqual([third.status, third.output], ["passing", "HTTP 200"]);
    assert.ok(third.updated_at > first.updated_at);
    await harness.close();
  });

  test("check output that always differs is written once per check_output_ms, and the newest is shown", async () => {
    const result = { passing: false, output: "at 0" };
    const { harness, look } = await checked(result);
    const first = await look();
    let last = first;
    const looks = (3 * MACHINE_LIMITS.check_output_ms) / EVERY_MS;
    for (let i = 1; i <= looks; i++) {
      result.output = `at ${i}`;
      last = await look();
    }
    assert.ok(last.revision - first.revision <= 4, `${last.revision - first.revision} writes in ${looks} looks`);
    assert.ok(last.revision - first.revision >= 3);
    result.output = "and then it stays";
    for (let i = 0; i <= MACHINE_LIMITS.check_output_ms / EVERY_MS; i++) last = await look();
    assert.equal(last.output, "and then it stays");
    await harness.close();
  });
});
