/** Two installations on one host, with a machine of the same id in each: what is the host's is never given to both. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { claimsOf } from "#core/host-claims.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { layoutOf } from "#drivers/runtime/runc/layout.ts";
import { readRecord, writeRecord } from "#drivers/runtime/runc/record.ts";
import { aLaunchIn } from "#machines/fixtures.ts";
import type { Launch } from "#machines/runtime/driver.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";
import { tempDir } from "../support.ts";

const never = new AbortController().signal;
const HOW = { signal: "SIGKILL", timeout_ms: 1000 };
const STAY = "while :; do sleep 1; done";

async function anInstallation(t: TestContext, node_id = randomBytes(8).toString("hex"), wait = false) {
  const dir = tempDir("hangar-apart");
  const data_dir = join(dir, "data");
  mkdirSync(data_dir);
  const images = fixtureImages({ box: { layers: [busyboxLayer(join(dir, "busybox"))] } });
  const options = { data_dir, node_id, memory_key: MEMORY_KEY, clock: systemClock, log: silentLog, images };
  const open = () => openRuncDriver(options);
  const down = () => takeDown(options);
  const claims = () => claimsOf("uids").filter(({ of }) => of.startsWith(`${data_dir}/`));
  const layout = layoutOf(data_dir, node_id);
  if (wait) return { open, down, claims, layout, data_dir, driver: undefined };
  const driver = await open();
  t.after(async () => {
    await driver.close();
    await down();
  });
  return { open, down, claims, layout, data_dir, driver };
}

const aMachine = (id: string, change: Partial<Launch> = {}): Launch =>
  aLaunchIn("apart", { image: "box", init: { exec: ["sh", "-c", STAY] } }, { id, ...change });

/** The host's user id of root in the machine. */
const rootOf = (handle: unknown): number => {
  const map = readFileSync(`/proc/${(handle as { pid: number }).pid}/uid_map`, "utf8");
  return Number(map.trim().split(/\s+/)[1]);
};

suite("two installations on one host", { skip: realMachinesMissing() }, () => {
  test("machines of the same id get different user ids and addresses, also after a restart", async (t) => {
    const id = randomBytes(7).toString("hex");
    const [one, other] = [await anInstallation(t), await anInstallation(t)];
    const [first, second] = await Promise.all(
      [one, other].map(async (each, at) => await each.driver?.start(aMachine(id, { org_id: `o${at}` }), never)),
    );
    const [a, b] = [rootOf(first?.handle), rootOf(second?.handle)];
    assert.notEqual(a, b, "their roots are different users of this host");
    assert.notEqual(first?.private_ipv4, second?.private_ipv4, "and their addresses lead to one of them each");
    await one.driver?.close();
    const again = await one.open();
    await again.stop({ id, boot: "b1", handle: first?.handle ?? null }, HOW, never);
    const restarted = await again.start(aMachine(id, { boot: "b2", org_id: "o0", keep_rootfs: true }), never);
    assert.equal(rootOf(restarted.handle), a);
    await again.close();
    // Taken down, the first gives its block back; the second keeps its own.
    await one.down();
    assert.deepEqual(one.claims(), []);
    assert.equal(other.claims().length, 1);
  });

  test("a machine whose user ids are taken by now gets others, and so do its files", async (t) => {
    const id = randomBytes(7).toString("hex");
    const [one, other] = [await anInstallation(t), await anInstallation(t)];
    const there = await other.driver?.start(aMachine(id, { org_id: "o1" }), never);
    const write = `echo kept > /root/word; chown 1000:1000 /root/word; ${STAY}`;
    const config = { image: "box", init: { exec: ["sh", "-c", write] } };
    const here = await one.driver?.start(aMachine(id, { config }), never);
    await one.driver?.stop({ id, boot: "b1", handle: here?.handle ?? null }, HOW, never);
    // As it was before blocks were claimed: both have the same one in their records.
    const record = readRecord(one.layout, id) ?? assert.fail("there is no record");
    writeRecord(one.layout, { ...record, uid_base: rootOf(there?.handle) });
    const again = await one.driver?.start(aMachine(id, { boot: "b2", keep_rootfs: true }), never);
    const base = rootOf(again?.handle);
    assert.notEqual(base, rootOf(there?.handle));
    const file = join(one.layout.containers, id, "rootfs/root/word");
    assert.equal(readFileSync(file, "utf8"), "kept\n");
    assert.equal(statSync(file).uid, base + 1000, "its owner is still user 1000 of the machine");
  });

  test("a copied data dir does not use the original's devices", async (t) => {
    const node_id = randomBytes(8).toString("hex");
    const { data_dir } = await anInstallation(t, node_id);
    const copy = await anInstallation(t, node_id, true);
    const says = (word: string): RegExp => new RegExp(`${copy.data_dir} is a copy of ${data_dir}.*${word}`);
    await assert.rejects(copy.open(), says("both cannot run machines on one host"));
    await assert.rejects(copy.down(), says("run this one on another host"), "nor does it take them away");
  });
});
