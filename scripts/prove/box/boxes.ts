/** Systems that Hangar is proved on, each freshly installed from its distribution's packages. */
import { spawnSync } from "node:child_process";

export interface Box {
  name: string;
  /** As a person reads it. */
  title: string;
  /** Debian's name of the release. */
  release: string;
}

const ROWS: readonly Box[] = [
  { name: "debian13", title: "Debian 13", release: "trixie" },
  { name: "debian12-v2", title: "Debian 12, cgroup v2", release: "bookworm" },
];

export const BOX_NAMES = ROWS.map(({ name }) => name);

/** The box of this name; the first one when none is asked for. */
export function boxNamed(name: string | undefined): Box {
  const found = ROWS.find((row) => row.name === (name ?? BOX_NAMES[0]));
  if (!found) throw new Error(`there is no box ${name}; there is ${BOX_NAMES.join(", ")}`);
  return found;
}

/** What differs between the architectures a box can have: that of the host, so that its kernel can run it. */
export const EMULATORS: Record<string, { qemu: string; flags: readonly string[]; image: string; console: string }> = {
  // `-cpu max` crashes the guest in software emulation of QEMU 7.2.
  x64: { qemu: "qemu-system-x86_64", flags: ["-cpu", "Nehalem"], image: "linux-image-amd64", console: "ttyS0" },
  arm64: {
    qemu: "qemu-system-aarch64",
    flags: ["-machine", "virt", "-cpu", "max"],
    image: "linux-image-arm64",
    console: "ttyAMA0",
  },
};

/** Programs on this host that make a box and run it, and the package that brings each. */
const PROGRAMS: Record<string, string> = {
  mmdebstrap: "mmdebstrap",
  "mkfs.ext4": "e2fsprogs",
  ssh: "openssh-client",
  "ssh-keygen": "openssh-client",
  "dpkg-deb": "dpkg",
};

/** Why no box can be run here, or undefined. */
export function boxesMissing(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "it takes root on Linux to make a box";
  const emulator = EMULATORS[process.arch];
  if (!emulator) return `there is no box for ${process.arch}`;
  const needed = { ...PROGRAMS, [emulator.qemu]: process.arch === "arm64" ? "qemu-system-arm" : "qemu-system-x86" };
  const path = `${process.env["PATH"]}:/usr/sbin:/sbin`;
  const missing = Object.entries(needed).filter(
    ([name]) => spawnSync("sh", ["-c", 'command -v "$1"', "sh", name], { env: { PATH: path } }).status !== 0,
  );
  if (missing.length === 0) return undefined;
  return `a box needs ${missing.map(([name]) => name).join(", ")} (apt-get install ${missing.map(([, from]) => from).join(" ")})`;
}
