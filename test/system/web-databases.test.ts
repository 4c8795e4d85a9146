/** The databases page, and the command beside it, with real nodes behind them: transactions and changes of the primary are seen as they happen. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { until } from "../support.ts";
import { noBrowser, openBrowser, visit } from "./browser.ts";
import { startProgram } from "./child.ts";
import { ownNetwork } from "./own-network.ts";
import { freePort, info, type Process, Stage, samePositionOn } from "./replication-support.ts";

interface TestNode {
  dir: string;
  port: number;
  process: Process;
  machine_name: string;
}

/** Two nodes with one lease between them. */
async function twoNodes(stage: Stage): Promise<TestNode[]> {
  const lease = join(stage.dir(), "lease.db");
  const nodes: TestNode[] = [];
  for (const machine_name of ["one", "two"]) {
    const dir = stage.dir();
    const port = await freePort();
    nodes.push({ dir, port, process: stage.node(dir, port, "--lease", `sqlite:${lease}`), machine_name });
  }
  return nodes;
}

/** The node that is primary once the other one follows it, and that other one. */
async function roles(nodes: readonly TestNode[]): Promise<[primary: TestNode, replica: TestNode]> {
  let found: TestNode | undefined;
  await until("one is primary and the other follows", async () => {
    for (const node of nodes) {
      const said = await info(node.port);
      if (said?.isPrimary && said.replicas.length === 1) found = node;
    }
    return found !== undefined;
  });
  const other = nodes.find((node) => node !== found);
  assert(found && other);
  return [found, other];
}

/** Machines of the platform in whose place the nodes answer: each is scraped and listened to as if it ran there. */
async function platformWith(t: TestContext, nodes: readonly TestNode[]): Promise<TestPlatform> {
  const free = [...nodes];
  const ports = new Map<string, number>();
  const reach = ({ id }: { id: string }): { host: string; port: number } => {
    const port = ports.get(id) ?? free.shift()?.port ?? 0;
    ports.set(id, port);
    return { host: "127.0.0.1", port };
  };
  const platform = await testPlatform(t, {}, { reach });
  await platform.ask("POST /v1/apps", { body: { app_name: "ledger" } });
  for (const { machine_name: name } of nodes) {
    const config = { image: "registry.example/ledger:1", metrics: { port: 20_202, path: "/metrics" } };
    const made = await platform.ask("POST /v1/apps/ledger/machines", { body: { name, config } });
    assert.equal(made.status, 200, made.text);
    await platform.ask(`GET /v1/apps/ledger/machines/${made.body.id}/wait?state=started`);
  }
  return platform;
}

if (await ownNetwork(import.meta.filename)) {
  suite("databases page of the dashboard", { skip: noBrowser }, () => {
    test("the page shows transactions, lag and primary of real nodes", async (t) => {
      const stage = new Stage(t);
      const nodes = await twoNodes(stage);
      const [first, second] = await roles(nodes);
      const database = new DatabaseSync(join(first.dir, "app.db"));
      stage.later(() => database.close());
      database.exec("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 60000; CREATE TABLE notes (text)");
      const platform = await platformWith(t, nodes);
      const { page, complaints } = await visit(t, await openBrowser(t), platform);
      await page.goto(`${platform.base_url}/#/databases`);

      const table = page.getByRole("region", { name: "Nodes of ledger" });
      const feed = page.getByRole("region", { name: "Transactions and changes" });
      const row = (node: TestNode, words: string) =>
        table.getByRole("row", { name: new RegExp(`${node.machine_name} ${words}`) });
      await row(first, "primary \\d+ - - 1").waitFor();
      await row(second, "replica \\d+ nothing \\d").waitFor();

      const drawing = page.getByRole("img", { name: /^Nodes of ledger: / });
      const drawnAs = (node: TestNode, words: string) =>
        page.getByRole("img", { name: new RegExp(`${node.machine_name}: ${words}`) });
      await drawnAs(first, "primary").waitFor();
      await drawnAs(second, "replica, .* behind").waitFor();
      assert.equal(await drawing.locator("rect").count(), 2);

      const env = { HANGAR_URL: platform.base_url, HANGAR_TOKEN: platform.token };
      const command = startProgram(t, "bin/hangar.mjs", ["db", "nodes", "--follow"], env);
      await command.until(new RegExp(`ledger/${first.machine_name}  primary, term \\d+, app\\.db \\d+$`));

      // Scrapes tell where databases are, too, only later; what happens comes from the nodes' own streams alone, and
      // from each of them only once it is open: so notes are written until page and command have heard of some.
      let written = 0;
      const write = (): void => {
        database.exec("INSERT INTO notes VALUES ('note')");
        written++;
      };
      for (const { machine_name } of nodes) {
        const heard = feed.getByRole("row", { name: new RegExp(`${machine_name} tx app\\.db`) });
        const printed = new RegExp(`ledger/${machine_name}  app\\.db at \\d+`);
        await until(`transactions of ${machine_name} are heard of`, async () => {
          write();
          return (await heard.count()) > 0 && command.lines.some((line) => printed.test(line));
        });
      }
      for (let n = 0; n < 5; n++) write();
      const txid = await lastTransaction(first, second, written);
      assert(txid >= 6, `${txid} transactions`);
      for (const node of nodes) {
        await row(node, `.*app\\.db ${txid}`).waitFor();
        await feed
          .getByRole("row", { name: new RegExp(`${node.machine_name} tx app\\.db .*now at ${txid}`) })
          .first()
          .waitFor();
      }

      await command.until(new RegExp(`ledger/${second.machine_name}  app\\.db at ${txid} \\(\\+\\d+\\)$`));

      await fetch(`http://127.0.0.1:${second.port}/promote`, { method: "POST" });
      await row(second, "primary").waitFor();
      await command.until(new RegExp(`ledger/${second.machine_name}  is the primary$`));
      await row(first, "replica").waitFor();
      await feed.getByRole("row", { name: new RegExp(`${second.machine_name} primary became primary`) }).waitFor();

      await first.process.end("SIGKILL");
      await row(first, "unreachable").waitFor();
      await drawnAs(first, "unreachable").waitFor();
      await feed
        .getByRole("row", { name: new RegExp(`${first.machine_name} unreachable`) })
        .first()
        .waitFor();
      assert.deepEqual(complaints, []);

      const asked = await platform.ask("GET /v1/orgs/personal/db_nodes");
      const told = asked.body.nodes.map((one: { machine_name: string; state: { primary: boolean } | null }) => [
        one.machine_name,
        one.state?.primary ?? null,
      ]);
      assert.deepEqual(Object.fromEntries(told), { [second.machine_name]: true, [first.machine_name]: null });
    });
  });
}

/** Where both nodes are once the replica has every note: before that, the primary may not have looked yet. */
async function lastTransaction(primary: TestNode, replica: TestNode, notes: number): Promise<number> {
  using copy = new DatabaseSync(join(replica.dir, "app.db"), { readOnly: true, timeout: 5000 });
  const counted = copy.prepare("SELECT count(*) AS n FROM notes");
  await until("the replica has every note", () => counted.get()?.["n"] === notes);
  const position = await samePositionOn(primary.port, replica.port, "app.db");
  return Number.parseInt(position.slice(0, 16), 16);
}
