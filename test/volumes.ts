/** What tests with real volumes need to know of the box. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mountsMissing } from "./system/own-mounts.ts";

/** Why there can be no real volumes here, or undefined. */
export function volumesMissing(): string | undefined {
  if (spawnSync("perl", ["-v"]).status !== 0) return "there is no perl (apt-get install perl-base)";
  return mountsMissing();
}

/** Why this way to encrypt cannot be tried here, or undefined. */
export function encryptionMissing(method: "dm-crypt" | "fscrypt" | "gocryptfs"): string | undefined {
  switch (method) {
    case "dm-crypt":
      return existsSync("/dev/mapper/control") ? undefined : "the kernel has no device mapper";
    case "fscrypt":
      return existsSync("/sys/fs/ext4/features/encryption") ? undefined : "the kernel's ext4 cannot encrypt";
    case "gocryptfs":
      if (!existsSync("/dev/fuse")) return "the kernel has no FUSE";
      return spawnSync("gocryptfs", ["-version"]).status === 0 ? undefined : "there is no gocryptfs";
  }
}
