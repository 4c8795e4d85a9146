/**
 * Encryption methods of volumes: each works in the file system of the image, or below it. Which ones a host supports
 * is probed, never guessed.
 */
import { existsSync } from "node:fs";
import { mkdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { assert, messageOf } from "#core/assert.ts";
import type { Encryption } from "#volumes/types.ts";
import { addKey } from "./kernel.ts";
import { mountAt } from "./mountinfo.ts";
import { run } from "./programs.ts";

/** The directory that machines see. */
export const DATA = "data";

export interface Layer {
  /** ext4 features that it needs. */
  features: readonly string[];
  /** Maps a device between image and file system; returns the device to mount. */
  map?: (device: string, id: string, key: Buffer) => Promise<string>;
  unmap?: (id: string) => Promise<void>;
  resize?: (id: string, key: Buffer) => Promise<void>;
  /** Called once, in a new file system mounted at `mount`. */
  prepare?: (mount: string, key: Buffer) => Promise<void>;
  /** Called at each mount; returns the directory that machines see. */
  open: (mount: string, key: Buffer | null) => Promise<string>;
  close?: (mount: string) => Promise<void>;
}

const plain: Layer = { features: [], open: async (mount) => join(mount, DATA) };

/** fscrypt: the kernel encrypts files and names; sizes and the directory tree are visible. */
const fscrypt: Layer = {
  features: ["encrypt"],
  prepare: (mount, key) => addKey(mount, key, join(mount, DATA)),
  async open(mount, key) {
    assert(key, "an encrypted volume has a key");
    await addKey(mount, key);
    return join(mount, DATA);
  },
};

/** gocryptfs: a FUSE program, which keeps running when the platform stops. */
const gocryptfs: Layer = {
  features: [],
  async prepare(mount, key) {
    // The key is random, so key stretching would only cost time.
    await run("gocryptfs", ["-q", "-init", "-scryptn", "10", join(mount, DATA)], { input: password(key) });
  },
  async open(mount, key) {
    assert(key, "an encrypted volume has a key");
    const clear = clearOf(mount);
    await mkdir(clear, { recursive: true });
    if (!(await mountAt(clear))) {
      const how = ["-q", "-allow_other", "-ko", "nosuid,nodev"];
      await run("gocryptfs", [...how, join(mount, DATA), clear], { input: password(key), outlives: true });
    }
    return clear;
  },
  async close(mount) {
    const clear = clearOf(mount);
    if (!(await mountAt(clear))) return;
    await run("umount", [clear]);
    await rmdir(clear);
  },
};

/** dm-crypt: encrypts the whole device. Best, where the kernel supports it. */
const dmCrypt: Layer = {
  features: [],
  async map(device, id, key) {
    const mapped = `/dev/mapper/${mapName(id)}`;
    if (existsSync(mapped)) return mapped;
    const cipher = ["--type", "plain", "--cipher", "aes-xts-plain64", "--key-size", "512", "--key-file", "-"];
    const more = ["--allow-discards", "--keyfile-size", "64"];
    await run("cryptsetup", ["open", ...cipher, ...more, device, mapName(id)], { input: key });
    return mapped;
  },
  async unmap(id) {
    if (existsSync(`/dev/mapper/${mapName(id)}`)) await run("cryptsetup", ["close", mapName(id)]);
  },
  async resize(id, key) {
    await run("cryptsetup", ["resize", "--key-file", "-", "--keyfile-size", "64", mapName(id)], { input: key });
  },
  open: async (mount) => join(mount, DATA),
};

const LOOK_MS = 10;
const ATTEMPTS = 200;

/** Unmounts a file system whose FUSE program has just released it, or is about to. */
export async function unmountSoon(point: string): Promise<void> {
  for (let looks = 1; ; looks++) {
    try {
      await run("umount", [point]);
      return;
    } catch (error) {
      if (looks === ATTEMPTS || !/busy/.test(messageOf(error))) throw error;
      await setTimeout(LOOK_MS);
    }
  }
}

const mapName = (id: string): string => `hangar-${id}`;
const clearOf = (mount: string): string => `${mount}.clear`;
const password = (key: Buffer): Buffer => Buffer.from(`${key.toString("base64")}\n`);

/** Best first. */
export const LAYERS: Record<Exclude<Encryption, "sim">, Layer> = { "dm-crypt": dmCrypt, fscrypt, gocryptfs };

export function layerOf(encryption: Encryption | null): Layer {
  if (encryption === null) return plain;
  assert(encryption !== "sim", "a volume of the sim disk stays there");
  return LAYERS[encryption];
}
