import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { layoutOf, pathsOf } from "../layout.ts";
import { removeRecord } from "../record.ts";
import { discard } from "./discard.ts";

const MACHINES = 100;
const FILES = 40;

test("a machine removed while its memory is being discarded is removed completely", async (t) => {
  const data = mkdtempSync(join(tmpdir(), "hangar-discard-"));
  t.after(() => rmSync(data, { recursive: true, force: true }));
  const layout = layoutOf(data, "test");
  for (let count = 0; count < MACHINES; count++) {
    const { dir, snapshot, disk, record } = pathsOf(layout, `m${count}`);
    mkdirSync(snapshot, { recursive: true });
    for (let file = 0; file < FILES; file++) writeFileSync(join(snapshot, `pages-${file}.img`), "");
    for (const file of [disk, record]) writeFileSync(file, "");
    discard(snapshot);
    // It is in the middle of it, sooner or later: each time at another place.
    for (let turns = count; turns > 0; turns--) await turn();
    removeRecord(layout, `m${count}`);
    assert.ok(!existsSync(dir), `${count} turns later`);
  }
});
