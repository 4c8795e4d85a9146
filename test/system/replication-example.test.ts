/** examples/replicated-sqlite: node and application tied together, reads anywhere, writes on the primary. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { tempDir, until } from "../support.ts";
import { freePort, info, type Process, Stage } from "./replication-support.ts";

const HERE = join(import.meta.dirname, "../../examples/replicated-sqlite");

interface Pair {
  supervisor: Process;
  node: number;
  app: string;
}

/** A node and an application under their supervisor, as the README says. */
async function pair(stage: Stage, dir: string, ...role: string[]): Promise<Pair> {
  const [node, port] = [await freePort(), await freePort()];
  const words = [process.execPath, "src/replication/main.ts", "--dir", dir, "--listen", `127.0.0.1:${node}`, ...role];
  const app_words = ["env", `DB_DIR=${dir}`, `PORT=${port}`, process.execPath, join(HERE, "app.mjs")];
  const supervisor = stage.run(join(HERE, "supervisor.mjs"), [...words, "--", ...app_words]);
  // Told to end, not killed: it takes its two with it.
  stage.later(() => supervisor.end("SIGTERM"));
  await until("the application listens", () => supervisor.output.includes("app: listens"));
  return { supervisor, node, app: `http://127.0.0.1:${port}` };
}

/** The process of a supervisor's node, found by what it was started with. */
function nodePid({ supervisor, node }: Pair): number {
  const children = readFileSync(`/proc/${supervisor.child.pid}/task/${supervisor.child.pid}/children`, "utf8");
  const found = children
    .trim()
    .split(" ")
    .map(Number)
    .find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`127.0.0.1:${node}`));
  assert.ok(found, "the supervisor has a node");
  return found;
}

suite("replication example", { timeout: 600_000 }, () => {
  test("a note written on the primary is read on the replica, which takes no writes", async (t) => {
    const stage = new Stage(t);
    const primary = await pair(stage, stage.dir(), "--primary");
    const replica = await pair(stage, stage.dir(), "--join", `http://127.0.0.1:${primary.node}`);
    const post = (app: string): Promise<Response> => fetch(`${app}/notes`, { method: "POST", body: "a note" });
    assert.equal((await post(primary.app)).status, 201);
    await until("the replica has it", async () =>
      (await (await fetch(`${replica.app}/notes`)).text()).includes("a note"),
    );
    assert.equal((await post(replica.app)).status, 503);
    assert.equal(await (await fetch(`${replica.app}/health`)).text(), "replica\n");
  });

  test("the application is stopped when its node dies; SIGTERM ends both", async (t) => {
    const stage = new Stage(t);
    const killed = await pair(stage, stage.dir(), "--primary");
    process.kill(nodePid(killed), "SIGKILL");
    assert.equal(await killed.supervisor.ended, 1);
    await assert.rejects(fetch(`${killed.app}/health`));
    const told = await pair(stage, stage.dir(), "--primary");
    told.supervisor.child.kill("SIGTERM");
    assert.equal(await told.supervisor.ended, 0, told.supervisor.output);
    assert.equal(await info(told.node), undefined);
  });

  test("a write on a replica is replayed to the primary's machine, a read is served", async (t) => {
    const url = await replaying(t, "148ed21a031189.vm.web.internal:20202");
    const write = await fetch(url, { method: "POST" });
    assert.equal(write.headers.get("svc-replay"), "instance=148ed21a031189");
    assert.equal(await (await fetch(url)).text(), "handled");
  });
});

async function replaying(t: TestContext, primary: string): Promise<string> {
  const dir = tempDir();
  writeFileSync(join(dir, ".primary"), `${primary}\n`);
  const { replayWrites } = (await import(join(HERE, "replay.mjs"))) as {
    replayWrites(dir: string, handle: RequestListener): RequestListener;
  };
  const server = createServer(replayWrites(dir, (_, response) => response.end("handled")));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
