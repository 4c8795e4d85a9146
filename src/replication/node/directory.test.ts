import assert from "node:assert/strict";
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../test/support.ts";
import { Application, openAll } from "../database/fixtures.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { Directory } from "./directory.ts";

suite("the databases of a node", () => {
  test("copies kept aside are limited per database, also when one's name begins with another's", () => {
    const dir = tempDir();
    const aside = join(dir, ".replication", "aside");
    mkdirSync(aside, { recursive: true });
    const others = ["db-1-5-abc.db", "db-2.sqlite-7-abc.db"];
    const own = Array.from({ length: REPLICATION_LIMITS.copies_aside + 2 }, (_, i) => `db-${i + 1000}-abc.db`);
    for (const [i, name] of [...others, ...own].entries()) {
      writeFileSync(join(aside, name), "");
      utimesSync(join(aside, name), 1000 + i, 1000 + i);
    }
    const app = new Application(join(dir, "db"));
    const nothing = (): void => undefined;
    const options = { dir, node_id: 1n, clock: systemClock, onTransactions: nothing, onUndone: nothing, log: nothing };
    const directory = new Directory({ ...options, onFailure: (error) => assert.fail(String(error)) });
    const [database] = openAll(directory);
    assert.ok(database);
    directory.aside.copy(database);
    const left = readdirSync(aside);
    assert.deepEqual(
      left.filter((name) => others.includes(name)),
      others,
    );
    assert.equal(left.length, others.length + REPLICATION_LIMITS.copies_aside);
    directory.close();
    app.close();
  });
});
