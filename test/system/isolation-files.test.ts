/** What is put into a machine's tree lands inside it, whatever links the machine left there or makes meanwhile. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { callsMissing } from "#drivers/linux/calls.ts";
import { GuestTree } from "#drivers/linux/guest-tree.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { aLaunch } from "#machines/fixtures.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";
import { PATIENCE_MS, runs, tempDir } from "../support.ts";
import { startProgram } from "./child.ts";

const TRIES = runs(1000, 10_000, 50_000);
/** How often each kind of thing must have been at the name when it was written to. */
const SEEN = 20;
const FILE = { content: Buffer.from("from the platform"), mode: 0o644, uid: 0, gid: 0 };

/** A tree, and beside it what no path in the tree may reach. */
function scene(): { dir: string; root: string; outside: string } {
  const dir = tempDir("hangar-files");
  const [root, outside] = [join(dir, "root"), join(dir, "outside")];
  for (const folder of [join(root, "folder/deep"), join(outside, "deep")]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(outside, "secret"), "of the host");
  writeFileSync(join(root, "file"), "of the image");
  symlinkSync("../outside", join(root, "folder.link"));
  symlinkSync(join(outside, "secret"), join(root, "file.link"));
  return { dir, root, outside };
}

/** Everything in a folder, by name and content. */
const census = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return `${path} ${entry.isFile() ? readFileSync(path, "utf8") : "folder"}`;
    })
    .toSorted();

const PUT: Record<string, (tree: GuestTree, n: number) => void> = {
  "a file in a folder": (tree) => tree.write("/folder/deep/made", FILE),
  "a file in folders that are not there": (tree, n) => tree.write(`/folder/new-${n}/made`, FILE),
  "a file in place of what is there": (tree) => tree.replace("/folder/deep/replaced", FILE),
  "a file by its name": (tree) => tree.write("/file", FILE),
  "a folder": (tree, n) => tree.folder(`/folder/made-${n}/deep`, 0, 0),
};

interface Put {
  landed: number;
  refused: number;
  /** Which of them landed at least once. */
  kinds: Set<string>;
}

/** Puts things into the tree until links and folders were both there often enough. */
function putAll(root: string, puts: typeof PUT): Put {
  using tree = new GuestTree(root);
  const seen = { link: 0, folder: 0 };
  const count: Put = { landed: 0, refused: 0, kinds: new Set() };
  let end = Number.POSITIVE_INFINITY;
  for (let n = 0; n < TRIES || Math.min(seen.link, seen.folder) < SEEN; n++) {
    if (n === TRIES) end = performance.now() + PATIENCE_MS;
    assert.ok(performance.now() < end, "links and folders take turns");
    const there = lstatSync(join(root, "folder"), { throwIfNoEntry: false });
    if (there) seen[there.isDirectory() ? "folder" : "link"]++;
    for (const [kind, put] of Object.entries(puts)) {
      try {
        put(tree, n);
        count.landed++;
        count.kinds.add(kind);
      } catch {
        // A name that led outside, or to nothing, just then.
        count.refused++;
      }
    }
  }
  return count;
}

suite("files written into a machine", { skip: callsMissing() }, () => {
  test("files are written inside the root while links change under them (C6)", async (t) => {
    const { root, outside } = scene();
    const swapper = startProgram(t, "test/system/link-swapper.ts", [root]);
    await swapper.until(/ready/);
    const before = census(outside);
    const { landed, refused, kinds } = putAll(root, PUT);
    assert.deepEqual(census(outside), before, "nothing outside has changed");
    assert.deepEqual(kinds, new Set(Object.keys(PUT)), "every kind lands now and then");
    assert.ok(refused > 0, `${landed} landed, none refused`);

    // The control: by its path alone a file soon lands outside.
    const naive = putAll(root, { "by its path": () => writeFileSync(join(root, "folder/deep/made"), "by path") });
    assert.notDeepEqual(census(outside), before, `a way out is found when there is one, of ${naive.landed}`);
    await swapper.kill();
    t.diagnostic(`${landed} landed inside, ${refused} refused, 0 outside; by path alone they do land outside`);
  });

  test("files are written inside a machine that left links out of its root (C6)", {
    skip: realMachinesMissing(),
  }, async (t) => {
    const { dir, outside } = scene();
    const node_id = randomBytes(8).toString("hex");
    const where = { data_dir: join(dir, "data"), node_id, memory_key: MEMORY_KEY, clock: systemClock, log: silentLog };
    mkdirSync(where.data_dir);
    const images = fixtureImages({ web: { layers: [busyboxLayer(join(dir, "busybox"))] } });
    const driver = await openRuncDriver({ ...where, images });
    t.after(async () => {
      await driver.close();
      await takeDown(where);
    });
    const before = census(outside);
    const never = new AbortController().signal;
    const id = randomBytes(7).toString("hex");
    const exec = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"];
    const start = async (
      boot: string,
      paths: readonly string[],
    ): Promise<{ id: string; boot: string; handle: null }> => {
      const files = paths.map((guest_path) => ({ guest_path, raw_value: Buffer.from("ours").toString("base64") }));
      const config = { image: "web", init: { exec }, files };
      await driver.start(aLaunch({ id, boot, config, keep_rootfs: true }), never);
      return { id, boot, handle: null };
    };
    const run = async (ref: { id: string; boot: string; handle: null }, script: string): Promise<string> => {
      const { stdout, stderr } = await driver.exec(ref, { command: ["sh", "-c", script], timeout_ms: 60_000 }, never);
      return stdout + stderr;
    };
    const up = "../".repeat(12);
    const first = await start("b1", []);
    await run(
      first,
      `mkdir -p /inner /tmp && ln -s ${outside} /absolute && ln -s ${up}${outside.slice(1)} /upward && ln -s /inner /good
       ln -s ${outside}/secret /direct && ln -s /proc/1/root/inner /magic
       for f in hosts hostname resolv.conf; do rm -f /etc/$f; ln -s ${outside}/secret /etc/$f; done`,
    );
    await driver.stop(first, { signal: "SIGTERM", timeout_ms: 60_000 }, never);
    // Places that are not there inside: the start says so, and nothing is written anywhere.
    for (const path of ["/absolute/made", "/upward/secret", "/direct", "/magic/made"])
      await assert.rejects(start(`b-${path}`, [path]), Error, path);
    const second = await start("b2", ["/good/made", "/etc/own"]);
    assert.equal(await run(second, "cat /inner/made /etc/own"), "oursours");
    assert.match(await run(second, "cat /etc/hosts"), /localhost/, "what the platform writes is a file of its own");
    assert.deepEqual(census(outside), before, "nothing outside has changed");
    await driver.destroy(id, never);
  });
});
