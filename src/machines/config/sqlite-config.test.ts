import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { problems } from "#http/validate.ts";
import { configProblems } from "./config.ts";
import { Config } from "./config-schema.ts";

const MOUNTS = [{ volume: "vol", path: "/data" }];
const S3 = "https://s3.example.com/bucket/ledger";

const found = (config: object): string[] => {
  const whole = { image: "x", ...config };
  const all = [...problems(Config, whole, "config"), ...configProblems(whole, "config")];
  return [...new Set(all.map(({ path }) => path))];
};

suite("config.sqlite", () => {
  test("a directory at or below the mount of the volume is accepted", () => {
    for (const dir of ["/data", "/data/db", "/data/a/b"])
      assert.deepEqual(found({ mounts: MOUNTS, sqlite: { dir } }), []);
    const slash = [{ volume: "vol", path: "/data/" }];
    assert.deepEqual(found({ mounts: slash, sqlite: { dir: "/data" } }), []);
    const all = { dir: "/data", backup: S3, ack: "quorum", cluster_size: 3 };
    assert.deepEqual(found({ mounts: MOUNTS, sqlite: all }), []);
  });

  test("a directory on no volume is refused with where the volume is", () => {
    const [without] = configProblems({ sqlite: { dir: "/data" } }, "config");
    assert.deepEqual(without, {
      path: "config.sqlite.dir",
      problem: "must be on a volume; config.mounts has none",
      allowed: "the path of a mount, or one below",
    });
    const [elsewhere] = configProblems({ mounts: MOUNTS, sqlite: { dir: "/database" } }, "config");
    assert.equal(elsewhere?.problem, "must be on a volume; the volume is at /data");
  });

  test("other wrong values are refused, each at its field", () => {
    const bad: [object, string, object?][] = [
      [{}, "config.sqlite.dir"],
      [{ dir: "data" }, "config.sqlite.dir"],
      [{ dir: "/data/../data" }, "config.sqlite.dir"],
      [{ dir: "/data/" }, "config.sqlite.dir"],
      [{ dir: ["/data", "/more"] }, "config.sqlite.dir"],
      [{ dir: "/data", ack: "all" }, "config.sqlite.ack"],
      [{ dir: "/data", ack: "quorum" }, "config.sqlite.cluster_size"],
      [{ dir: "/data", cluster_size: 3 }, "config.sqlite.cluster_size"],
      [{ dir: "/data", ack: "quorum", cluster_size: 1 }, "config.sqlite.cluster_size"],
      [{ dir: "/data", backup: "/backups" }, "config.sqlite.backup"],
      [{ dir: "/data" }, "config.services.0.internal_port", { services: [{ protocol: "tcp", internal_port: 20_202 }] }],
    ];
    for (const [sqlite, path, more] of bad)
      assert.deepEqual(found({ mounts: MOUNTS, sqlite, ...more }), [path], JSON.stringify(sqlite));
    assert.deepEqual(found({ mounts: MOUNTS, sqlite: "/data" }), ["config.sqlite"]);
  });
});
