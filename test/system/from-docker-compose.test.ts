/** docs/from-docker-compose.md as it is written: a real PostgreSQL, a worker and a web server, built and deployed. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { BASES } from "#cli/images/base-recipes.ts";
import { buildahMissing } from "#drivers/builds/builder-root.ts";
import { runcMissing } from "#drivers/choice.ts";
import { freePort } from "#proxy/fixtures.ts";
import { packageRoot, packagesMissing } from "../debian-root.ts";
import { shell, tempDir } from "../support.ts";
import { NPX, ROOT } from "./child.ts";

const SERVER = ["postgresql-15", "postgresql-17"].find((name) => packagesMissing([name]) === undefined);
const PROGRAMS = ["bash", "coreutils", "findutils", "sed", "grep", "util-linux", "openssl", "passwd"];
const skip =
  runcMissing() ??
  buildahMissing() ??
  packagesMissing(["python3"]) ??
  (SERVER ? undefined : "PostgreSQL is not installed");

test("the services of a compose file are deployed as one app and find each other", { skip }, async (t) => {
  const page = readFileSync(join(ROOT, "docs/from-docker-compose.md"), "utf8");
  const blocks = [...page.matchAll(/```sh compose\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  assert.equal(blocks.length, 3);
  const cwd = join(tempDir(), "home");
  mkdirSync(cwd);
  // What `images base` makes, of the packages that this box has: mmdebstrap takes minutes.
  const database = packageRoot(join(cwd, "database"), [SERVER ?? "", ...PROGRAMS]);
  for (const [path, text] of Object.entries(BASES["postgres"]?.files ?? {})) {
    mkdirSync(join(database, dirname(path)), { recursive: true });
    writeFileSync(join(database, path), text);
    chmodSync(join(database, path), 0o755);
  }
  packageRoot(join(cwd, "code"), [
    "python3",
    "postgresql-client-common",
    `postgresql-client-${SERVER?.split("-")[1]}`,
    ...PROGRAMS,
  ]);
  const entrypoint = (BASES["postgres"]?.config.Entrypoint ?? []).map((word) => JSON.stringify(word)).join(",");
  const before = `
export HANGAR_DATA_DIR="$PWD/.hangar"
npx hangar up > hangar.out 2>&1 &
until npx hangar auth whoami 2>/dev/null; do sleep 0.2; done
npx hangar images import hangar/postgres-files:1 database
npx hangar images import hangar/shop-base:1 code
mkdir image && printf 'FROM hangar/postgres-files:1\\nENTRYPOINT [${entrypoint}]\\nSTOPSIGNAL SIGINT\\n' > image/Dockerfile
printf 'app = "image"\\n' > image/hangar.toml
(cd image && npx hangar deploy --build-only)
`;
  const text = blocks
    .join("")
    .replaceAll("8093", String(await freePort()))
    .replaceAll("hangar/postgres:1", "builds/image:latest");
  const env = { cwd, HOME: cwd, HANGAR_LISTEN: "127.0.0.1:0" };
  t.after(() => shell(`${NPX}\n[ ! -d .hangar ] || npx hangar down --all`, env));
  const { status, stdout, stderr } = await shell(`set -eu -o pipefail\n${NPX}\n${before}\n${text}`, env);
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  assert.match(stdout, /group +image +ports/i);
  assert.match(stdout, /port 5432 is not published/);
  assert.match(stdout, /^order 1$/m);
  assert.match(stdout, /^1 orders, 1 done$/m);
  assert.match(stderr, /migrate has ended well/);
});
