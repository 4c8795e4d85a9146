/** Inside a real machine, as its root: everything that has been a way out of containers is refused (C1), and images that are one are not started (C2). */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { TAR_END, tarPadding } from "#archive/tar.ts";
import { systemClock } from "#core/clock.ts";
import { ALL_EGRESS } from "#core/egress-policy.ts";
import { silentLog } from "#core/log.ts";
import { dir, entry, file, header, NEVER, openStore, pieces, symlink, tar } from "#drivers/images/fixtures.ts";
import { helloLayer } from "#drivers/images/hello.ts";
import type { Images } from "#drivers/images/images.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { aMachine, resumedOf } from "#machines/fixtures.ts";
import { privateAddress } from "#machines/names.ts";
import { prefixFromOrg } from "#machines/private-networks.ts";
import type { Launch, RuntimeDriver } from "#machines/runtime/driver.ts";
import { PLATFORM } from "#machines/runtime/image-source.ts";
import { MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";
import { tempDir } from "../support.ts";
import { ROOT } from "./child.ts";

const KOFFI = join(ROOT, `node_modules/@koromix/koffi-linux-${process.arch}`);

interface Outcome {
  name: string;
  refused: boolean;
  detail: string;
}

/** The built-in image, with the probes and what they need to make system calls. */
async function* probingImage(): AsyncGenerator<Buffer> {
  for await (const chunk of helloLayer()) if (!chunk.equals(TAR_END)) yield chunk;
  yield dir("probe");
  yield packed("probe/probe.mjs", readFileSync(join(import.meta.dirname, "isolation-guest.mjs")));
  yield packed("probe/koffi/index.js", readFileSync(join(KOFFI, "index.js")));
  const native = `linux_${process.arch}/koffi.node`;
  yield packed(`probe/koffi/${native}`, readFileSync(join(KOFFI, native)));
  yield TAR_END;
}

const packed = (path: string, body: Buffer): Buffer =>
  Buffer.concat([header(path, body), body, tarPadding(body.length)]);

interface Box {
  images: Images;
  driver: RuntimeDriver;
  launch(name: string, change?: Partial<Launch["config"]>): Promise<Launch>;
}

/** A driver with a store of images and nothing else; everything it created is removed with the test. */
async function openBox(t: TestContext): Promise<Box> {
  const folder = tempDir("hangar-probes");
  const say = (facts: object, text: string): void => t.diagnostic(`${text} ${JSON.stringify(facts)}`);
  const log = { ...silentLog, warn: say, error: say };
  const where = { data_dir: folder, node_id: randomBytes(8).toString("hex"), clock: systemClock, log };
  const images = await openStore(t, { dir: folder });
  const driver = await openRuncDriver({ ...where, memory_key: MEMORY_KEY, images });
  t.after(async () => {
    await driver.close();
    await takeDown(where);
  });
  return {
    images,
    driver,
    async launch(name, change = {}) {
      const { name: own, app_name, region, instance_id } = aMachine();
      // Others on this box may run the same test.
      const id = randomBytes(7).toString("hex");
      const private_ip = privateAddress({ id, network: prefixFromOrg(where.node_id, "default"), host_id: "0001" });
      const image_ref = await images.resolve(name, "org", NEVER);
      const config = { image: name, ...change };
      const base = { id, name: own, app_name, org_id: "org", region, instance_id, private_ip, image_ref };
      return { ...base, boot: "b1", config, secrets: {}, egress: ALL_EGRESS, keep_rootfs: false };
    },
  };
}

async function probe(
  driver: RuntimeDriver,
  { id, boot }: Launch,
  handle: Awaited<ReturnType<RuntimeDriver["start"]>>["handle"],
) {
  const command = ["/usr/bin/node", "/probe/probe.mjs"];
  const { exit_code, stdout, stderr } = await driver.exec({ id, boot, handle }, { command, timeout_ms: 60_000 }, NEVER);
  assert.equal(exit_code, 0, stderr);
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "[]") as Outcome[];
}

const open = (outcomes: readonly Outcome[]): string[] =>
  outcomes.filter(({ refused }) => !refused).map(({ name, detail }) => `${name}: ${detail}`);

suite("isolation probes", { skip: realMachinesMissing() }, () => {
  test("every probe is refused, before and after a resume (C1)", async (t) => {
    const { images, driver, launch } = await openBox(t);
    await images.import("probes:1", probingImage(), PLATFORM, NEVER);
    const machine = await launch("probes:1", { init: { exec: ["/usr/bin/node", "/hello/server.mjs"] } });
    const { handle } = await driver.start(machine, NEVER);
    const before = await probe(driver, machine, handle);
    assert.ok(before.length >= 40, `${before.length} probes`);
    assert.deepEqual(open(before), []);
    t.diagnostic(`${before.length} probes refused`);
    const frozen = await driver.suspend({ id: machine.id, boot: machine.boot, handle }, NEVER);
    assert.equal(frozen.kind, "snapshot");
    const resumed = resumedOf(await driver.resume(machine, frozen.handle, NEVER));
    const after = await probe(driver, machine, resumed.handle);
    assert.deepEqual(open(after), []);
    assert.equal(after.length, before.length);
    t.diagnostic(`${after.length} probes refused after a resume`);
  });

  const shell = [dir("bin"), entry({ path: "bin/sh", body: "", mode: 0o755 })];
  const LED_ASTRAY: [what: string, image: Buffer][] = [
    ["/dev is a link", tar(...shell, symlink("dev", "/tmp"))],
    ["/proc is a link", tar(...shell, symlink("proc", "/tmp"))],
    ["/sys is a link", tar(...shell, symlink("sys", "usr"))],
    ["/proc is a file", tar(...shell, file("proc"))],
    ["/dev/null is a link", tar(...shell, dir("dev"), symlink("dev/null", "/proc/sys/kernel/core_pattern"))],
    ["/dev/console is a link", tar(...shell, dir("dev"), symlink("dev/console", "/tmp/x"))],
    ["/dev/pts is a link", tar(...shell, dir("dev"), symlink("dev/pts", "/proc"))],
    ["/dev/shm is a link", tar(...shell, dir("dev"), symlink("dev/shm", "/etc"))],
  ];
  test("content of /dev, /proc and /sys in an image is left out of its layers (C2)", async (t) => {
    const { images, launch } = await openBox(t);
    for (const [i, [what, image]] of LED_ASTRAY.entries()) {
      await images.import(`astray:${i}`, pieces(image), PLATFORM, NEVER);
      const { id, org_id, image_ref } = await launch(`astray:${i}`);
      const { layers } = await images.hold({ id, org_id }, image_ref, NEVER);
      assert.ok(layers.length > 0, what);
      for (const path of layers.flatMap((layer) => ["dev", "proc", "sys"].map((name) => join(layer, name)))) {
        const found = lstatSync(path, { throwIfNoEntry: false });
        assert.ok(!found || (found.isDirectory() && readdirSync(path).length === 0), `${what}: ${path}`);
      }
    }
  });

  const HOSTILE: [what: string, image: Buffer, change: Partial<Launch["config"]>][] = [
    ["/.svc is a link", tar(...shell, symlink(".svc", "/etc")), {}],
    ["a user whose number overflows", tar(...shell), { processes: [{ exec: ["/bin/sh"], user: "4294967296" }] }],
    ["a user that is not there", tar(...shell), { processes: [{ exec: ["/bin/sh"], user: "nobody-at-all" }] }],
    [
      "a file written through a link out",
      tar(...shell, symlink("etc", "/proc/1")),
      { files: [{ guest_path: "/etc/../../x/../proc/self/mem", raw_value: "eA==" }] },
    ],
  ];
  test("an image or config that could escape is not started, with the reason (C2)", async (t) => {
    const { images, driver, launch } = await openBox(t);
    for (const [i, [what, image, change]] of HOSTILE.entries()) {
      await images.import(`hostile:${i}`, pieces(image), PLATFORM, NEVER);
      const machine = await launch(`hostile:${i}`, { init: { exec: ["/bin/sh"] }, ...change });
      const thrown = await driver.start(machine, NEVER).then(
        () => assert.fail(`${what}: it was started`),
        (error: unknown) => error as Error,
      );
      assert.ok(thrown.message.length > 10, what);
      t.diagnostic(`${what}: ${thrown.message.slice(0, 140)}`);
      assert.deepEqual(await driver.recover([]), [], what);
      await driver.destroy(machine.id, NEVER);
    }
  });
});
