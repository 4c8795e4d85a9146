/** What an organization may have the platform keep with its builds, when requests come one after the other and at once. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { anApp } from "#apps/fixtures.ts";
import { anOrg } from "#auth/fixtures.ts";
import type { Builder } from "#builds/builder.ts";
import { ContextFiles } from "#builds/context-files.ts";
import { BUILD_LIMITS, type BuildLimits } from "#builds/limits.ts";
import { BuildService } from "#builds/service.ts";
import type { NewBuild } from "#builds/types.ts";
import { systemClock } from "#core/clock.ts";
import { ALL_EGRESS } from "#core/egress-policy.ts";
import { silentLog } from "#core/log.ts";
import { migrate } from "#stores/migrate.ts";
import { sqlAppStore } from "#stores/sql/apps.ts";
import { sqlAuthStore } from "#stores/sql/auth.ts";
import { sqlBuildStore } from "#stores/sql/builds.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { tempDir } from "./support.ts";
import { digestOf, tarOf } from "./system/build-context.ts";

/** A builder whose builds go on until they are stopped. */
const endless: Builder = {
  problem: () => undefined,
  build: (_, __, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    }),
  clear: async () => {},
  sweep: async () => {},
};

async function open(t: TestContext, limits: Partial<BuildLimits>) {
  const dir = tempDir();
  const database = inlineSqlite();
  await migrate(database);
  await sqlAuthStore(database).insertOrg(anOrg({ id: "o1", slug: "acme" }), 10);
  const app = anApp({ id: "a1", name: "web", org_id: "o1" });
  await sqlAppStore(database).insertApp(app, 10);
  const all = { ...BUILD_LIMITS, ...limits };
  const files = new ContextFiles({ dir: join(dir, "files"), clock: systemClock, limits: all });
  const service = new BuildService({
    store: sqlBuildStore(database),
    builder: endless,
    files,
    dir: join(dir, "builds"),
    node_id: "n1",
    notifier: undefined,
    address: async () => "fdaa::1",
    egress: async () => ALL_EGRESS,
    clock: systemClock,
    log: silentLog,
    limits: all,
  });
  await service.start();
  t.after(async () => {
    await service.close();
    await database.close();
  });
  const owner = { org_id: "o1", app_id: "a1" };
  let next = 0;
  return {
    service,
    send: async (bytes: Buffer) =>
      await service.receive(
        owner,
        (async function* () {
          yield tarOf([bytes]);
        })(),
      ),
    create: async (wanted: Partial<NewBuild>) =>
      await service.create(
        app,
        "test",
        { dockerfile: "Dockerfile", args: {}, secrets: {}, no_cache: false, files: [], ...wanted },
        String(next++).padStart(14, "0"),
      ),
  };
}

const DOCKERFILE = Buffer.from("FROM scratch\n");
const listed = (paths: readonly string[]) => paths.map((path) => ({ path, sha256: digestOf(DOCKERFILE) }));

suite("bounds of builds", () => {
  test("a file counts as often as a context names it (context_bytes)", async (t) => {
    const { send, create } = await open(t, { context_bytes: DOCKERFILE.length * 3 });
    await send(DOCKERFILE);
    const build = await create({ files: listed(["Dockerfile", "a", "b"]) });
    assert.deepEqual([build.state, build.bytes], ["queued", DOCKERFILE.length * 3]);
    await assert.rejects(create({ files: listed(["Dockerfile", "a", "b", "c"]) }), {
      code: "limit_reached",
      message: /limit context_bytes/,
    });
  });

  test("lists of builds that wait, run and come at the same time share what an organization has (org_queue_bytes)", async (t) => {
    const { send, create } = await open(t, { org_queue_bytes: 10_000, builds_per_org: 100 });
    await send(DOCKERFILE);
    const wanted = { files: listed(["Dockerfile"]), args: { A: "x".repeat(2000) } };
    const results = await Promise.allSettled(Array.from({ length: 12 }, () => create(wanted)));
    const refused = results.filter((result) => result.status === "rejected");
    assert.equal(results.length - refused.length, 4);
    for (const { reason } of refused) assert.match(String((reason as Error).message), /limit org_queue_bytes/);
  });

  test("a build that has ended gives back what its list took", async (t) => {
    const { send, create, service } = await open(t, { org_queue_bytes: 5000, builds_per_org: 100 });
    await send(DOCKERFILE);
    const wanted = { files: listed(["Dockerfile"]), args: { A: "x".repeat(2000) } };
    const [first] = [await create(wanted), await create(wanted)];
    await assert.rejects(create(wanted), { code: "limit_reached" });
    assert.equal((await service.cancel("a1", first?.id ?? "")).state, "cancelled");
    await create(wanted);
  });
});
