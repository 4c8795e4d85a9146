/** A small ext4 of a test's own, on a loop device, whose power can be cut. Needs `ownMounts`. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { tempDir } from "../support.ts";
import { Child } from "./child.ts";

/** EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32), and the flag by which the journal is not flushed either. */
const SHUTDOWN = 0x8004587d;
const NO_LOG_FLUSH = 2;

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { encoding: "utf8", stdio: "pipe" });

export class Ext4 {
  readonly path: string;
  readonly #image: string;
  readonly #t: Pick<TestContext, "after">;
  #mounted = false;

  constructor(t: Pick<TestContext, "after">, mebibytes: number) {
    this.#t = t;
    // Lazily, so that a straggler cannot hold the folder.
    t.after(() => this.unmount("--lazy"));
    const dir = tempDir("hangar-ext4");
    this.#image = join(dir, "image");
    this.path = join(dir, "mnt");
    mkdirSync(this.path);
    run("truncate", "-s", `${mebibytes}M`, this.#image);
    // No reserved blocks: full means full, for root too.
    run("mkfs.ext4", "-q", "-m", "0", this.#image);
    this.mount();
  }

  mount(): void {
    run("mount", "-o", "loop", this.#image, this.path);
    this.#mounted = true;
  }

  unmount(...how: string[]): void {
    if (this.#mounted) run("umount", ...how, this.path);
    this.#mounted = false;
  }

  /**
   * Waits at the switch: a process that has everything it needs in memory, so that the cut happens within
   * microseconds of `cut()`. What was not on the disk by then is gone after `unmount` and `mount`.
   */
  async switch(): Promise<PowerSwitch> {
    const program = `open(my $d, "<", $ARGV[0]) or die; $| = 1; print "ready\\n"; <STDIN>;
      my $flag = pack("L", ${NO_LOG_FLUSH}); defined(ioctl($d, ${SHUTDOWN}, $flag)) or die "ioctl: $!"; print "cut\\n"`;
    const child = new Child("perl", ["-e", program, this.path]);
    this.#t.after(() => child.kill());
    await child.until(/ready/);
    return {
      cut: async () => {
        // Read before the order goes out: what is stamped earlier was acknowledged before the cut.
        const at = process.hrtime.bigint();
        child.send("now");
        const { code } = await child.ended;
        if (code !== 0) throw new Error(`the power could not be cut: ${child.complaints}`);
        return at;
      },
    };
  }
}

interface PowerSwitch {
  /** Cuts the power and answers with the moment just before, on the monotonic clock, in nanoseconds. */
  cut(): Promise<bigint>;
}
