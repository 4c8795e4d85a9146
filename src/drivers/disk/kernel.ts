/**
 * System calls that Node lacks: sparse files' holes, freezing a file system, keys of fscrypt. A dozen lines of
 * Perl each, because every Debian has it (perl-base is essential) and nothing needs to be compiled or loaded
 * into this process. Numbers are the kernel's: <linux/fs.h>, <linux/fscrypt.h>; the same on x64 and arm64.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Extent } from "#volumes/disk.ts";
import { run } from "./programs.ts";

/** Prints the data extents: lseek with SEEK_DATA (3) and SEEK_HOLE (4). */
const EXTENTS = `open(my $f, "<", $ARGV[0]) or die "open: $!"; my $at = 0;
while (defined(my $data = sysseek($f, $at, 3))) { $at = sysseek($f, $data, 4); printf "%d %d\\n", $data, $at; }`;

/** Data extents of a file; one without holes is one extent. */
export async function extentsOf(file: string, size: number): Promise<Extent[]> {
  if (process.platform !== "linux") return size > 0 ? [{ offset: 0, length: size }] : [];
  const lines = (await run("perl", ["-e", EXTENTS, file])).split("\n").filter(Boolean);
  return lines.map((line) => {
    const [from = 0, to = 0] = line.split(" ").map(Number);
    return { offset: from, length: to - from };
  });
}

const FREEZE = 0xc0045877;
const THAW = 0xc0045878;

/**
 * Freezes the file system and thaws it when its input ends, after a timeout, or on request: if we are killed, the pipe
 * closes and it thaws. Ignores signals sent to the whole terminal.
 */
const HOLD = `$SIG{$_} = "IGNORE" for qw(INT TERM HUP PIPE); $| = 1; my $zero = pack("i", 0);
open(my $d, "<", $ARGV[0]) or die "open: $!"; print "ready\\n"; <STDIN>;
defined(ioctl($d, ${FREEZE}, $zero)) or die "freeze: $!"; print "frozen\\n";
my $in = ""; vec($in, fileno(STDIN), 1) = 1; my $heard = select($in, undef, undef, $ARGV[1]);
defined(ioctl($d, ${THAW}, $zero)) or die "thaw: $!"; print($heard ? "thawed\\n" : "late\\n");`;

/** Runs `work` while the file system is frozen. Fails, thawed, after `limit_ms`. */
export async function whileFrozen(
  dir: string,
  limit_ms: number,
  work: () => Promise<void>,
): Promise<{ frozen_ms: number }> {
  const child = spawn("perl", ["-e", HOLD, dir, String(limit_ms / 1000)], { stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.on("error", () => {});
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (piece: string) => {
    said += piece;
  });
  const closed = once(child, "close");
  // A failure to start is reported at the end, when this is awaited.
  closed.catch(() => {});
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const readLine = async (): Promise<string> => {
    const { value, done } = (await lines.next()) as { value: string | undefined; done?: boolean };
    if (done) throw new Error(`${dir} could not be frozen: ${said.trim()}`);
    return value ?? "";
  };
  try {
    await readLine();
    child.stdin.write("now\n");
    await readLine();
    const began = performance.now();
    await work();
    child.stdin.end();
    if ((await readLine()) !== "thawed")
      throw new Error(`${dir} would have been frozen for more than ${limit_ms / 1000} s`);
    return { frozen_ms: performance.now() - began };
  } finally {
    child.stdin.end();
    await closed;
  }
}

const THAW_ONLY = `open(my $d, "<", $ARGV[0]) or die "open: $!"; my $zero = pack("i", 0); ioctl($d, ${THAW}, $zero);`;

/** Thaws a file system if it is frozen. */
export async function thaw(dir: string): Promise<void> {
  await run("perl", ["-e", THAW_ONLY, dir]);
}

/** FS_IOC_ADD_ENCRYPTION_KEY, then for a new folder FS_IOC_SET_ENCRYPTION_POLICY: version 2, AES-256-XTS and -CTS. */
const ADD_KEY = `open(my $d, "<", $ARGV[0]) or die "open: $!"; binmode(STDIN);
read(STDIN, my $key, 64) == 64 or die "the key is short"; my $arg = pack("LLx32LLx32", 2, 0, 64, 0) . $key;
defined(ioctl($d, 0xc0506617, $arg)) or die "add key: $!"; exit unless $ARGV[1]; my $id = substr($arg, 8, 16);
open(my $f, "<", $ARGV[1]) or die "open: $!"; my $policy = pack("CCCCx4", 2, 1, 4, 3) . $id;
defined(ioctl($f, 0x800c6613, $policy)) or die "set policy: $!";`;

/** Adds an fscrypt key to the file system at `mount`; with `folder`, sets the policy on that empty directory. */
export async function addKey(mount: string, key: Uint8Array, folder?: string): Promise<void> {
  await run("perl", ["-e", ADD_KEY, mount, ...(folder ? [folder] : [])], { input: key });
}
