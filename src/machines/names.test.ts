import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { repeatableIds } from "#core/ids.ts";
import { MachineHarness, OWNER } from "./machine-harness.fixtures.ts";
import { machineName } from "./names.ts";

suite("machine names", () => {
  test("a generated name that is taken is generated again; a chosen one is refused", async () => {
    const harness = await MachineHarness.open();
    const seed = Buffer.from("the same twice");
    // What the second machine would be called: its id is drawn first, then its name.
    const ids = repeatableIds(seed, 0);
    ids.hex(14);
    const taken = machineName(ids);
    await harness.create({}, { name: taken, skip_launch: true });
    const input = { config: { image: "web:1" }, skip_launch: true };
    const actor = { ...harness.actor(), ids: repeatableIds(seed, 0) };
    const made = await harness.module.machines.create(OWNER, input, actor);
    assert.notEqual(made.name, taken);
    assert.match(made.name, /^[a-z]+-[a-z]+-\d+$/);
    // The same request again, as after a crash before its answer, is the same machine.
    const again = await harness.module.machines.create(OWNER, input, { ...actor, ids: repeatableIds(seed, 0) });
    assert.equal(again.id, made.id);
    await assert.rejects(harness.create({}, { name: taken }), { code: "name_taken" });
    await harness.close();
  });
});
