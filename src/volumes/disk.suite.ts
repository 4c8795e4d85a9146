import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { suite, type TestContext, test } from "node:test";
import type { DiskVolume, VolumeDisk } from "./disk.ts";
import type { Encryption } from "./types.ts";

/** A disk under test, and how a program in a machine would use a volume of it. */
export interface DiskRig {
  disk: VolumeDisk;
  /** Another one over the same place, as after a kill. */
  again(): Promise<VolumeDisk>;
  write(volume: DiskVolume, name: "a" | "b", bytes: Buffer): Promise<void>;
  read(volume: DiskVolume, name: "a" | "b"): Promise<Buffer>;
}

/** What every VolumeDisk must do. `open` gives an empty one that is started. */
export function diskSuite(
  name: string,
  {
    open,
    encryption,
    skip,
  }: { open(t: TestContext): Promise<DiskRig>; encryption: Encryption | null; skip?: string | undefined },
): void {
  const volume = (id: string, size_gb = 1): DiskVolume => ({ id, size_gb, fstype: "ext4", encryption, key: KEY });
  const KEY = encryption === null ? null : randomBytes(64);
  const page = (text: string): Buffer => Buffer.alloc(8192, text);
  const broken_off = new Error("broken off");

  suite(`volume disk: ${name}`, { skip }, () => {
    test("a volume keeps its data; creating it again changes nothing; removing it leaves nothing", async (t) => {
      const { disk, write, read, again } = await open(t);
      const v = volume("vol_one");
      await disk.create(v);
      await write(v, "a", page("one"));
      await disk.create(v);
      assert.deepEqual(await read(v, "a"), page("one"));
      const second = await again();
      assert.deepEqual([...(await second.inventory()).volumes.keys()], ["vol_one"]);
      await second.remove("vol_one");
      await second.remove("vol_one");
      const { volumes, points } = await second.inventory();
      assert.deepEqual([volumes.size, points.size], [0, 0]);
    });

    test("a fork has the content of one moment and is independent afterwards", async (t) => {
      const { disk, write, read } = await open(t);
      const [from, to] = [volume("vol_from"), volume("vol_to")];
      await disk.create(from);
      await write(from, "a", page("first"));
      await disk.mount(from);
      await disk.fork(from, to);
      await disk.fork(from, to);
      await write(from, "a", page("later"));
      await write(to, "b", page("own"));
      assert.deepEqual(await read(to, "a"), page("first"));
      assert.deepEqual(await read(from, "a"), page("later"));
      assert.deepEqual(await read(to, "b"), page("own"));
      await disk.unmount(from);
    });

    test("a point in time stays unchanged, and a volume restored from it is identical", async (t) => {
      const { disk, write, read } = await open(t);
      const [v, copy] = [volume("vol_v"), volume("vol_copy")];
      await disk.create(v);
      await write(v, "a", page("then"));
      await disk.takePoint(v, "vs_1");
      await write(v, "a", page("now"));
      await disk.takePoint(v, "vs_1");
      await using point = await disk.openPoint("vs_1");
      const fill = async (image: { write(offset: number, bytes: Uint8Array): Promise<void> }): Promise<void> => {
        for (const { offset, length } of point.extents) {
          for (let at = offset; at < offset + length; at += 1 << 20) {
            await image.write(at, await point.read(at, Math.min(1 << 20, offset + length - at)));
          }
        }
      };
      await assert.rejects(
        disk.fill(copy, async (image) => {
          await image.write(0, page("half"));
          throw broken_off;
        }),
        broken_off,
      );
      assert.ok(!(await disk.inventory()).volumes.has("vol_copy"), "what was not finished is not there");
      await disk.fill(copy, fill);
      assert.deepEqual(await read(copy, "a"), page("then"));
      await disk.takePoint(copy, "vs_2");
      await using same = await disk.openPoint("vs_2");
      assert.equal(same.size, point.size);
      await disk.dropPoint("vs_1");
      await disk.dropPoint("vs_1");
      assert.deepEqual([...(await disk.inventory()).points.keys()], ["vs_2"]);
    });

    test("a volume grows while mounted or not, at the latest at its next mount", async (t) => {
      const { disk, write, read } = await open(t);
      const v = volume("vol_g");
      await disk.create(v);
      await write(v, "a", page("kept"));
      await disk.unmount(v);
      const before = await disk.usage(v);
      assert.equal(await disk.grow({ ...v, size_gb: 2 }), "grown");
      await disk.mount({ ...v, size_gb: 2 });
      const bytes = async (): Promise<number> => {
        const usage = await disk.usage(v);
        return (usage?.blocks ?? 0) * (usage?.block_size ?? 0);
      };
      assert.ok((await bytes()) > 1.9 * 1024 ** 3);
      const grown = await disk.grow({ ...v, size_gb: 3 });
      t.diagnostic(`in use: ${grown}`);
      assert.ok((await bytes()) > (grown === "grown" ? 2.8 : 1.9) * 1024 ** 3);
      await disk.unmount(v);
      await disk.mount({ ...v, size_gb: 3 });
      assert.ok((await bytes()) > 2.8 * 1024 ** 3);
      assert.deepEqual(await read({ ...v, size_gb: 3 }, "a"), page("kept"));
      await disk.unmount(v);
      assert.ok(before === undefined || before.blocks > 0);
    });

    test("mount and unmount are idempotent, also after a restart", async (t) => {
      const { disk, again } = await open(t);
      const v = volume("vol_m");
      await disk.create(v);
      const first = await disk.mount(v);
      assert.deepEqual(await disk.mount(v), first);
      const second = await again();
      assert.deepEqual(await second.mount(v), first);
      await second.unmount(v);
      await second.unmount(v);
    });

    test("the data of an encrypted volume is not readable on the disk", {
      skip: encryption ? false : "this kind of disk does not encrypt",
    }, async (t) => {
      const { disk, write } = await open(t);
      const v = volume("vol_secret");
      await disk.create(v);
      await write(v, "a", page("plain for all to read"));
      await disk.takePoint(v, "vs_secret");
      await using point = await disk.openPoint("vs_secret");
      for (const { offset, length } of point.extents) {
        assert.ok(!(await point.read(offset, length)).includes("plain for all"), "it is in the image");
      }
    });
  });
}
