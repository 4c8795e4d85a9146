/**
 * The disk of a box: a release of Debian as its packages make it, with nothing in it but what boots it, nodejs and npm. Made
 * once for each list of packages and kept for later runs; what a run writes goes elsewhere.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Box, EMULATORS } from "./boxes.ts";

export interface Image {
  disk: string;
  kernel: string;
  initrd: string;
  /** The private key that opens it. */
  key: string;
}

/** What boots it and lets us in, and what the README asks for. */
const PACKAGES =
  "systemd-sysv dbus udev kmod initramfs-tools iproute2 openssh-server ca-certificates curl procps nodejs npm".split(
    " ",
  );
/** Not the folder for temporary files, which a run of tests has for itself and takes away. */
const IMAGE_FOLDER = "/var/tmp";
const DISK_BYTES = 16 * 2 ** 30;
/** Counts up when what is done below changes, so that an older image is not taken for this one. */
const EDITION = 2;

const NETWORK = "[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n";

export function imageOf(box: Box, say: (text: string) => void): Image {
  const kernel_package = EMULATORS[process.arch]?.image ?? "";
  const packages = [...PACKAGES, kernel_package];
  const of = `${EDITION} ${box.release} ${process.arch} ${packages.join(" ")}`;
  const key = createHash("sha256").update(of).digest("hex").slice(0, 12);
  const dir = join(IMAGE_FOLDER, `hangar-box-${box.name}-${key}`);
  if (!existsSync(dir)) {
    say(`making the disk of ${box.title} (once) …`);
    const making = mkdtempSync(join(IMAGE_FOLDER, "hangar-box-making-"));
    try {
      make(making, box, packages);
      renameSync(making, dir);
    } finally {
      rmSync(making, { recursive: true, force: true });
    }
  }
  const file = (name: string): string => join(dir, name);
  return { disk: file("disk.img"), kernel: file("vmlinuz"), initrd: file("initrd"), key: file("key") };
}

function make(dir: string, box: Box, packages: readonly string[]): void {
  const root = join(dir, "root");
  run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(dir, "key")]);
  const mirror = mirrorOfHost();
  // Nothing is lost with a disk that is half made, so that no package waits until it is on the disk.
  const how = ["--quiet", "--variant=important", "--format=directory", "--dpkgopt=force-unsafe-io"];
  run("mmdebstrap", [...how, `--include=${packages.join(",")}`, box.release, root, ...(mirror ? [mirror] : [])]);
  furnish(root, readFileSync(join(dir, "key.pub"), "utf8"));
  const boot = readdirSync(join(root, "boot"));
  for (const [name, kept] of [
    ["vmlinuz", "vmlinuz"],
    ["initrd.img", "initrd"],
  ] as const)
    copyFileSync(join(root, "boot", boot.find((file) => file.startsWith(`${name}-`)) ?? name), join(dir, kept));
  const disk = join(dir, "disk.img");
  run("truncate", ["-s", String(DISK_BYTES), disk]);
  run("mkfs.ext4", ["-q", "-d", root, disk]);
  rmSync(root, { recursive: true });
}

function furnish(root: string, key: string): void {
  const put = (path: string, text: string, mode = 0o644): void => {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
    chmodSync(join(root, path), mode);
  };
  put("root/.ssh/authorized_keys", key, 0o600);
  chmodSync(join(root, "root/.ssh"), 0o700);
  put("etc/hostname", "box\n");
  put("etc/hosts", "127.0.0.1 localhost\n127.0.1.1 box\n::1 localhost\n");
  put("etc/systemd/network/20-box.network", NETWORK);
  put("etc/fstab", "/dev/vda / ext4 defaults 0 1\n");
  rmSync(join(root, "etc/resolv.conf"), { force: true });
  // QEMU's own resolver.
  put("etc/resolv.conf", "nameserver 10.0.2.3\n");
  // Half the time to boot where the processor is emulated: an initrd with this disk's drivers alone.
  put("etc/initramfs-tools/conf.d/box", "MODULES=list\n");
  appendFileSync(join(root, "etc/initramfs-tools/modules"), "virtio_pci\nvirtio_blk\nvirtio_net\next4\n");
  run("chroot", [root, "update-initramfs", "-u", "-k", "all"]);
  // From here on it boots from a copy outside: packages that come later need not make it anew, nor wait for the disk.
  put("etc/initramfs-tools/update-initramfs.conf", "update_initramfs=no\nbackup_initramfs=no\n");
  put("etc/dpkg/dpkg.cfg.d/box", "force-unsafe-io\n");
  run("chroot", [root, "systemctl", "enable", "systemd-networkd", "ssh"]);
  // Nothing but what is tried takes time of a box.
  run("chroot", [root, "systemctl", "mask", "apt-daily.timer", "apt-daily-upgrade.timer", "man-db.timer"]);
  carryOver(root, put);
}

/** How this host reaches package servers, so that the box can: certificates it trusts and proxies it is told to use. */
function carryOver(root: string, put: (path: string, text: string) => void): void {
  const bundle = "etc/ssl/certs/ca-certificates.crt";
  if (existsSync(`/${bundle}`)) {
    copyFileSync(`/${bundle}`, join(root, bundle));
    put("usr/local/etc/npmrc", `cafile=/${bundle}\n`);
    put("root/.npmrc", `cafile=/${bundle}\n`);
  }
  const proxies = ["http_proxy", "https_proxy", "no_proxy"].flatMap((name) => {
    const value = process.env[name] ?? process.env[name.toUpperCase()];
    return value === undefined ? [] : [`${name}=${value}`];
  });
  if (proxies.length > 0) put("etc/environment", `${proxies.join("\n")}\n`);
  const apt = run("apt-config", ["dump", "Acquire::http::Proxy", "Acquire::https::Proxy"]);
  put("etc/apt/apt.conf.d/90box", apt);
  const { stdout: registry } = spawnSync("npm", ["config", "get", "registry"], { encoding: "utf8", cwd: "/" });
  if (registry?.startsWith("http")) appendFileSync(join(root, "root/.npmrc"), `registry=${registry}`);
}

/** Where this host has its packages from; mmdebstrap's own default when it is no Debian. */
function mirrorOfHost(): string | undefined {
  const file = "/etc/apt/sources.list.d/debian.sources";
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return /^URIs:\s*(https?:\/\/\S+)/m.exec(text)?.[1];
}

function run(program: string, args: readonly string[]): string {
  const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin`, LC_ALL: "C" };
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: "utf8", env, maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`${program} ${args.slice(0, 4).join(" ")}: ${error?.message ?? stderr}`);
  return stdout;
}
