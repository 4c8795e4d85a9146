import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

const MODULES = `
const parts = (await Promise.all(process.argv.slice(1).map((file) => import(file)))) && process.moduleLoadList;
process.stdout.write(JSON.stringify(parts.map((name) => name.split(" ").at(-1))));
`;

/** The built-in modules of Node that these files load. */
const loadedWith = (...files: string[]): string[] =>
  JSON.parse(
    execFileSync(process.execPath, ["--input-type=module", "-e", MODULES, "--", ...files], { encoding: "utf8" }),
  ) as string[];

test("a database node is loaded without the modules of Node that it does not use, which take 13 MiB", () => {
  const files = ["commands", "flags", "proxy/flags", "election/open-leases"].map((file) => `#replication/${file}.ts`);
  const loaded = loadedWith(...files);
  assert.ok(loaded.includes("_http_server"));
  assert.deepEqual(
    loaded.filter((name) => ["internal/deps/undici/undici", "http2"].includes(name)),
    [],
  );
  assert.ok(loadedWith("node:http").includes("internal/deps/undici/undici"), "an import would load them");
});
