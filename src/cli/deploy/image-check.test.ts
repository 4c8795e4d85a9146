import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { MachineConfig } from "#client/api.ts";
import { type ImageHealthcheck, withImageCheck } from "./image-check.ts";

const checked = (healthcheck: ImageHealthcheck | undefined, more: Partial<MachineConfig> = {}) => {
  const said: string[] = [];
  const { checks } = withImageCheck({ image: "web:1", ...more }, "app", healthcheck, (line) => said.push(line));
  return { checks, said };
};

suite("HEALTHCHECK of an image", () => {
  test("one that asks a port becomes the check of machines without checks", () => {
    const test = ["CMD-SHELL", "curl -f http://localhost:3000/up || exit 1"];
    const health = { type: "http", port: 3000, path: "/up" };
    assert.deepEqual(checked({ test }).checks, {
      health: { ...health, interval: "5000ms", timeout: "2000ms", grace_period: "1000ms" },
    });
    assert.deepEqual(checked({ test, interval_ms: 30_000, timeout_ms: 500, start_period_ms: 60_000 }).checks, {
      health: { ...health, interval: "30000ms", timeout: "500ms", grace_period: "60000ms" },
    });
    assert.equal(checked({ test: ["CMD", "pg_isready"] }).checks?.["health"]?.port, 5432);
  });

  test("the file's own checks win, also those of services, and NONE is none", () => {
    const test = ["CMD", "nc", "-z", "localhost", "9000"];
    const own = { alive: { type: "tcp" as const, port: 1 } };
    assert.deepEqual(checked({ test }, { checks: own }).checks, own);
    const services = [{ internal_port: 80, protocol: "tcp" as const, checks: [{ type: "tcp" as const }] }];
    assert.equal(checked({ test }, { services }).checks, undefined);
    assert.deepEqual(checked({ test: ["NONE"] }), { checks: undefined, said: [] });
    assert.deepEqual(checked(undefined), { checks: undefined, said: [] });
  });

  test("one that runs a program is named, with what to write instead", () => {
    const { checks, said } = checked({ test: ["CMD", "/app/check.sh"] });
    assert.equal(checks, undefined);
    assert.match(said.join(), /group app: HEALTHCHECK `\/app\/check\.sh` .* write \[checks\] into the app file/);
  });
});
