/**
 * Imported images among several processes: what one took in, the others boot, through an object store or from the
 * process that imported them.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { Channel, listenForPeers } from "#hosts/channel.ts";
import { type ImagePart, type ImageParts, PLATFORM } from "#machines/runtime/image-source.ts";
import { migrate } from "#stores/migrate.ts";
import { LocalObjects } from "#stores/objects/local.ts";
import { sqlImportedImages } from "#stores/sql/imported-images.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { until } from "../../../test/support.ts";
import { configDocument } from "./archive.ts";
import { digestOf } from "./blobs.ts";
import { MEDIA } from "./documents.ts";
import { dir, file, makeImage, NEVER, NOT_ROOT, ociArchive, pieces, tar, tempStore } from "./fixtures.ts";
import { type Images, openImages } from "./images.ts";
import type { ImageLimits } from "./limits.ts";
import { remoteLayerStore } from "./remote-layer-store.ts";

const LARGE = "much ".repeat(700_000);
const LAYERS = [tar(dir("etc"), file("etc/hostname", "box")), tar(file("large", LARGE))];
const IMAGE = ociArchive(makeImage(LAYERS, { Cmd: ["/run"] }));

interface Process {
  images: Images;
  /** Where its packed images are. */
  packed: string;
  /** Where what is unfinished is. */
  ingest: string;
  close(): Promise<void>;
}

/** Processes on one database; with `shared` they have one store, else each hands out what it has. */
async function platform(t: TestContext, { shared }: { shared: boolean }) {
  const database = inlineSqlite();
  await migrate(database);
  const names = sqlImportedImages(database);
  const sealer = new Sealer(randomBytes(32));
  const listeners = new Map<string, string>();
  const channel = new Channel(sealer, systemClock);
  t.after(() => channel.close());
  const everyone = tempStore(t);
  return async (node_id: string, limits: Partial<ImageLimits> = {}): Promise<Process> => {
    const own = tempStore(t);
    const packed = shared ? everyone : join(own, "imported");
    const remote = async (id: string) => {
      const address = listeners.get(id);
      return address === undefined ? undefined : { address, layer_store: remoteLayerStore(channel, address) };
    };
    const sharing = { names, node_id, objects: new LocalObjects(packed), ...(shared ? {} : { remote }) };
    const settings = { registry_config: undefined, registry_allow_private: [] };
    const images = await openImages(join(own, "images"), settings, systemClock, silentLog, { sharing, ...limits });
    const { calls, streams } = images.layer_store ?? assert.fail();
    const listen = { host: "127.0.0.1", port: 0 };
    const listener = await listenForPeers({ listen, sealer, calls, streams, clock: systemClock, log: silentLog });
    listeners.set(node_id, listener.address);
    let open = true;
    const close = async (): Promise<void> => {
      if (!open) return;
      open = false;
      await listener.close();
      await images.close();
    };
    t.after(close);
    return { images, packed, ingest: join(own, "images/ingest"), close };
  };
}

const objects = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((one) => (one.isFile() ? one.name : []))
    : [];

const NOWHERE = `sha256:${"0".repeat(64)}`;

/** An image of layers that are here, and one more in a file. */
function partsOn(here: readonly ImagePart[], own: string, layer: Buffer): ImageParts {
  writeFileSync(own, layer);
  const diff_id = digestOf(layer);
  const last = { diff_id, digest: diff_id, size: layer.length, media_type: MEDIA.layer, file: own, claimed: true };
  const layers = [...here, last];
  return {
    layers,
    config: configDocument(
      layers.map((part) => part.diff_id),
      {},
    ),
  };
}

const refusal = async (work: Promise<unknown>): Promise<ApiError> => {
  const thrown = await work.then(
    () => assert.fail("it worked"),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ApiError, String(thrown));
  return thrown;
};

for (const shared of [true, false]) {
  suite(`images imported elsewhere, ${shared ? "in a shared store" : "fetched from the process that has them"}`, {
    skip: NOT_ROOT,
  }, () => {
    test("an image imported by one process boots in every other, for its own organization only", async (t) => {
      const start = await platform(t, { shared });
      const [control, host] = [await start("n1"), await start("n2")];
      const { digest } = await control.images.import("web:1", pieces(IMAGE), "o1", NEVER);
      assert.deepEqual(
        (await host.images.list("o1")).map(({ name, owner, source }) => [name, owner, source]),
        [["web:1", "o1", "imported"]],
      );
      const ref = await host.images.resolve("web:1", "o1", NEVER);
      assert.equal(ref.digest, digest);
      const held = await host.images.hold({ id: "m1", org_id: "o1" }, ref, NEVER);
      assert.deepEqual(held.config.cmd, ["/run"]);
      const [lower = "", upper = ""] = held.layers;
      assert.equal(readFileSync(join(lower, "etc/hostname"), "utf8"), "box");
      assert.equal(readFileSync(join(upper, "large"), "utf8"), LARGE);
      assert.equal((await refusal(host.images.show("web:1", "o2"))).code, "image_not_found");
      assert.equal((await host.images.show("web:1", "o1")).layer_list.length, 2);
    });

    test("a re-imported name is the new image in every process, and a removed one is deleted with its files", async (t) => {
      const start = await platform(t, { shared });
      const [one, two] = [await start("n1"), await start("n2")];
      await one.images.import("web:1", pieces(IMAGE), PLATFORM, NEVER);
      const before = await two.images.resolve("web:1", "o1", NEVER);
      const newer = ociArchive(makeImage([LAYERS[0] ?? assert.fail(), tar(file("newer"))]));
      const { digest } = await two.images.import("web:1", pieces(newer), PLATFORM, NEVER);
      for (const { images } of [one, two]) assert.equal((await images.resolve("web:1", "o1", NEVER)).digest, digest);
      assert.notEqual(before.digest, digest);
      const replaced = await two.images.resolve(`web:1@${before.digest}`, "o1", NEVER);
      assert.equal(replaced.digest, before.digest, "what it was before is found by its digest until it is collected");
      await one.images.remove("web:1", PLATFORM);
      await one.images.collect({ dry_run: false, all: true });
      assert.deepEqual(await two.images.list(PLATFORM), []);
      assert.deepEqual([objects(one.packed), objects(two.packed)], [[], []]);
    });

    test("an image of another's layers and its own boots in every process, also when the other is removed", async (t) => {
      const start = await platform(t, { shared });
      const [builder, host] = [await start("n1"), await start("n2")];
      const { digest: base } = await builder.images.import("base:1", pieces(IMAGE), "o1", NEVER);
      const here = (await builder.images.parts(base, "o1")) ?? assert.fail();
      const parts = partsOn(here, join(tempStore(t), "own"), tar(file("own")));
      assert.equal(await builder.images.parts(base, "o2"), undefined);
      // Whoever names a layer that another organization brought gets nothing.
      assert.equal((await refusal(builder.images.assemble("web:1", parts, "o2", NEVER))).code, "image_not_found");
      assert.deepEqual(await builder.images.list("o2"), []);

      const { digest } = await builder.images.assemble("web:1", parts, "o1", NEVER);
      assert.equal((await builder.images.assemble("web:1", parts, "o1", NEVER)).digest, digest);
      await builder.images.remove("base:1", "o1");
      await builder.images.collect({ dry_run: false, all: true });
      const held = await host.images.hold(
        { id: "m1", org_id: "o1" },
        await host.images.resolve("web:1", "o1", NEVER),
        NEVER,
      );
      assert.equal(readFileSync(join(held.layers[0] ?? "", "etc/hostname"), "utf8"), "box");
      assert.equal(readFileSync(join(held.layers[2] ?? "", "own"), "utf8"), "x");
    });

    test("an image of parts that are not what they are said to be is refused, and leaves nothing", async (t) => {
      const builder = await (await platform(t, { shared }))("n1");
      const own = join(tempStore(t), "own");
      const parts = partsOn([], own, tar(file("own")));
      writeFileSync(own, tar(file("other")));
      assert.equal((await refusal(builder.images.assemble("web:1", parts, "o1", NEVER))).code, "image_refused");
      const gone = partsOn(
        [{ diff_id: NOWHERE, digest: NOWHERE, size: 1, media_type: MEDIA.layer }],
        own,
        tar(file("own")),
      );
      assert.equal((await refusal(builder.images.assemble("web:1", gone, "o1", NEVER))).code, "image_not_found");
      assert.deepEqual(await builder.images.list("o1"), []);
      assert.deepEqual([objects(builder.packed), readdirSync(builder.ingest)], [[], []]);
    });

    test("an image that does not fit on the disk leaves nothing there", async (t) => {
      const start = await platform(t, { shared });
      const [control, host] = [await start("n1"), await start("n2", { disk_kept_bytes: 2 ** 60 })];
      await control.images.import("web:1", pieces(IMAGE), "o1", NEVER);
      const ref = await host.images.resolve("web:1", "o1", NEVER);
      const { code } = await refusal(host.images.hold({ id: "m1", org_id: "o1" }, ref, NEVER));
      assert.equal(code, "storage_full");
      await until("nothing unfinished is left", () => readdirSync(host.ingest).length === 0);
    });

    test("an unreachable process that holds the image is named with a hint; with a shared store it is not needed", async (t) => {
      const start = await platform(t, { shared });
      const [control, host] = [await start("n1"), await start("n2")];
      await control.images.import("web:1", pieces(IMAGE), "o1", NEVER);
      const ref = await host.images.resolve("web:1", "o1", NEVER);
      await control.close();
      const work = host.images.hold({ id: "m1", org_id: "o1" }, ref, NEVER);
      if (shared) assert.equal((await work).layers.length, 2);
      else {
        const { code, message } = await refusal(work);
        assert.equal(code, "image_elsewhere");
        assert.match(message, /web:1 was imported by process n1 at 127\.0\.0\.1:\d+, which does not answer/);
      }
    });
  });
}
