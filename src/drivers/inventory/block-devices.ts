/** Loop devices and device-mapper devices that show files of one installation. */
import { readdirSync, readFileSync } from "node:fs";
import { program } from "../linux/program.ts";

export interface BlockDevice {
  /** `loop3` or `dm-0`, as in /sys/block. */
  name: string;
  /** `major:minor`. */
  device: string;
  /** The file behind a loop device, or the name of a mapped one. */
  of: string;
}

export interface BlockDevices {
  loops: BlockDevice[];
  mapped: BlockDevice[];
}

/** `isOurs` receives the backing file of a loop device. */
export async function blockDevicesOf(isOurs: (file: string) => boolean): Promise<BlockDevices> {
  const all = allLoops();
  const loops = all.filter(({ of }) => isOurs(of));
  // A volume's file is in a pool; its path is relative when the pool is no longer mounted.
  const rest = all.filter((loop) => !loops.includes(loop));
  const backing = loops.length > 0 && rest.length > 0 ? await backingDevices() : new Map<string, string>();
  for (const known = new Set(loops.map(({ device }) => device)), more = [...rest]; ; ) {
    const at = more.findIndex(({ name }) => known.has(backing.get(name) ?? ""));
    const [found] = at < 0 ? [] : more.splice(at, 1);
    if (!found) break;
    known.add(found.device);
    loops.push(found);
  }
  const names = new Set(loops.map(({ name }) => name));
  return { loops, mapped: allMapped().filter(({ slaves }) => slaves.some((name) => names.has(name))) };
}

function allLoops(): BlockDevice[] {
  return blockNames("loop").flatMap((name) => {
    const of = about(name, "loop/backing_file")?.replace(/ \(deleted\)$/, "");
    return of ? [{ name, of, device: about(name, "dev") ?? "" }] : [];
  });
}

function allMapped(): (BlockDevice & { slaves: string[] })[] {
  return blockNames("dm-").map((name) => ({
    name,
    of: about(name, "dm/name") ?? "",
    device: about(name, "dev") ?? "",
    slaves: readdirSync(`/sys/block/${name}/slaves`),
  }));
}

/** Loop device → device of the file system of its backing file, which only an ioctl reports. */
async function backingDevices(): Promise<Map<string, string>> {
  const text = await program("losetup", ["--list", "--noheadings", "--raw", "--output", "NAME,BACK-MAJ:MIN"]);
  const rows = text.split("\n").filter(Boolean);
  return new Map(rows.map((row) => row.replace("/dev/", "").split(" ") as [string, string]));
}

const blockNames = (prefix: string): string[] =>
  readdirSync("/sys/block").filter((name) => name.startsWith(prefix) && /\d$/.test(name));

function about(name: string, what: string): string | undefined {
  try {
    return readFileSync(`/sys/block/${name}/${what}`, "utf8").trimEnd();
  } catch {
    return undefined;
  }
}
