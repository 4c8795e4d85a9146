/** Runs inside a machine as its root, and tries what a machine must not be able to do. Prints one JSON line. */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";

const koffi = createRequire("/probe/")("/probe/koffi/index.js");
const libc = koffi.load("libc.so.6");
const sys = libc.func("long syscall(long number, long a, long b, long c, long d, long e)");
const arm = process.arch === "arm64";
const number = (x64, arm64) => (arm ? arm64 : x64);

const outcomes = [];
const note = (name, refused, detail) => outcomes.push({ name, refused, detail: String(detail).slice(0, 100) });
const errorName = (errno) => Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? String(errno);

/** A system call that must be refused because of who asks, not because of what was asked for. */
function call(name, nr, args = [], allowed = ["EPERM", "ENOSYS", "EACCES"]) {
  const result = Number(sys(nr, ...[...args, 0, 0, 0, 0, 0].slice(0, 5)));
  const error = result === -1 ? errorName(koffi.errno()) : "";
  note(name, result === -1 && allowed.includes(error), result === -1 ? error : `it answered ${result}`);
}

/** A file that must not be written to. */
function write(path, text) {
  try {
    writeFileSync(path, text);
    note(`write ${path}`, false, "written");
  } catch (error) {
    note(`write ${path}`, true, error.code);
  }
}

/** A file that must not be read, or must have nothing in it. */
function read(path, isHarmless = (text) => text === "") {
  let fd;
  try {
    fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0o4000));
    const buffer = Buffer.alloc(4096);
    const text = buffer.toString("latin1", 0, readSync(fd, buffer));
    note(`read ${path}`, isHarmless(text), text === "" ? "empty" : JSON.stringify(text.slice(0, 60)));
  } catch (error) {
    note(`read ${path}`, true, error.code);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

const NEW = { user: 0x10000000, mount: 0x20000, net: 0x40000000, pid: 0x20000000, cgroup: 0x2000000 };
for (const [what, flag] of Object.entries(NEW)) call(`unshare ${what}`, number(272, 97), [flag]);
call("setns", number(308, 268), [0, 0]);
call("mount", number(165, 40));
call("umount2", number(166, 39));
call("pivot_root", number(155, 41));
call("fsopen", 430);
call("open_tree", 428);
call("move_mount", 429);
call("mount_setattr", 442);
call("clone3", 435);
call("ptrace", number(101, 117), [16, 1]);
call("process_vm_readv", number(310, 270), [1]);
call("kcmp", number(312, 272), [1, 1]);
call("bpf", number(321, 280));
call("perf_event_open", number(298, 241));
call("userfaultfd", number(323, 282));
call("io_uring_setup", 425, [8, 0]);
call("keyctl", number(250, 219));
call("add_key", number(248, 217));
call("request_key", number(249, 218));
call("open_by_handle_at", number(304, 265));
call("name_to_handle_at", number(303, 264));
call("kexec_load", number(246, 104));
call("init_module", number(175, 105));
call("finit_module", number(313, 273));
call("delete_module", number(176, 106));
call("reboot", number(169, 142), [0xfee1dead, 672274793, 0]);
call("swapon", number(167, 224));
call("acct", number(163, 89));
call("quotactl", number(179, 60));
call("settimeofday", number(164, 170));
call("clock_settime", number(227, 112));
call("syslog", number(103, 116), [3, 0, 0]);
call("sethostname", number(170, 161), [0, 0]);
call("fanotify_init", number(300, 262));
if (!arm) call("iopl", 172, [3]);
const mknod = libc.func("int mknod(const char *path, unsigned int mode, unsigned long device)");
for (const [what, mode, device] of [
  ["mem", 0o020666, (1 << 8) | 1],
  ["disk", 0o060666, (254 << 8) | 0],
]) {
  const made = mknod(`/tmp/${what}`, mode, device) === 0;
  let open = false;
  try {
    if (made) closeSync(openSync(`/tmp/${what}`, "r"));
    open = made;
  } catch {
    // Made, and of no use: that is as good.
  }
  note(`mknod ${what}`, !open, made ? `made, ${open ? "and opened" : "cannot be opened"}` : errorName(koffi.errno()));
}
const socket = libc.func("int socket(int domain, int type, int protocol)");
for (const [what, domain, type, protocol] of [
  ["raw IPv4", 2, 3, 1],
  ["raw IPv6", 10, 3, 58],
  ["packet", 17, 3, 0x300],
  ["vsock", 40, 1, 0],
]) {
  const fd = socket(domain, type, protocol);
  note(`${what} socket`, fd < 0, fd < 0 ? errorName(koffi.errno()) : `descriptor ${fd}`);
}

write("/proc/sys/kernel/core_pattern", "|/tmp/x");
write("/proc/sys/kernel/modprobe", "/tmp/x");
write("/proc/sys/vm/panic_on_oom", "1");
write("/proc/sys/net/ipv4/ip_forward", "1");
write("/proc/sysrq-trigger", "h");
write("/sys/kernel/uevent_helper", "/tmp/x");
write("/sys/fs/cgroup/release_agent", "/tmp/x");
write("/sys/fs/cgroup/memory/release_agent", "/tmp/x");
write("/proc/1/oom_score_adj", "-1000");
read("/proc/kcore");
read("/proc/kallsyms", (text) => !/^(?!0+ )[0-9a-f]+ /m.test(text));
read("/proc/kmsg");
read("/dev/kmsg");
read("/dev/mem");
read("/proc/timer_list");
read("/proc/sched_debug");
read("/proc/keys");
read("/proc/net/unix", (text) =>
  text
    .trim()
    .split("\n")
    .slice(1)
    .every((line) => !line.includes("@")),
);
for (const folder of ["/proc/acpi", "/proc/scsi", "/sys/firmware"]) {
  let names = [];
  try {
    names = readdirSync(folder);
  } catch {
    // Not there at all.
  }
  note(`list ${folder}`, names.length === 0, names.join(" "));
}

const status = readFileSync("/proc/self/status", "utf8");
const field = (name) => new RegExp(`^${name}:\\s+(.*)$`, "m").exec(status)?.[1] ?? "";
note("no new privileges", field("NoNewPrivs") === "1", field("NoNewPrivs"));
note("seccomp filters", field("Seccomp") === "2", field("Seccomp"));
const FORBIDDEN = {
  net_admin: 12,
  net_raw: 13,
  sys_module: 16,
  sys_rawio: 17,
  sys_ptrace: 19,
  sys_admin: 21,
  sys_boot: 22,
  sys_resource: 24,
  sys_time: 25,
  mknod: 27,
  bpf: 39,
};
for (const set of ["CapEff", "CapPrm", "CapBnd"]) {
  const has = Object.entries(FORBIDDEN).filter(([, bit]) => (BigInt(`0x${field(set)}`) >> BigInt(bit)) & 1n);
  note(`capabilities ${set}`, has.length === 0, `${field(set)} ${has.map(([name]) => name)}`);
}
const map = readFileSync("/proc/self/uid_map", "utf8").trim().split(/\s+/);
note("root is not the host's root", map.length === 3 && Number(map[1]) >= 65536, map.join(" "));
const open = readdirSync("/proc/self/fd").map((fd) => [
  fd,
  existsSync(`/proc/self/fd/${fd}`) ? readlinkSync(`/proc/self/fd/${fd}`) : "",
]);
// glibc's malloc opens this one for an instant, to count processors for a new thread.
const COUNT = "/sys/devices/system/cpu/online";
const folders = open.filter(
  ([, target]) => target.startsWith("/") && target !== COUNT && !/^\/(dev|proc|probe|usr|hello)\//.test(target),
);
note("no folder of the host is open", folders.length === 0, JSON.stringify(folders));
const init = existsSync("/proc/1/fd") ? readdirSync("/proc/1/fd") : [];
note(
  "the first process has few files open",
  init.every((fd) => Number(fd) <= 20),
  init.join(" "),
);
const own = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
note("only the machine's own processes show", own.length < 20, own.length);
const writable = readFileSync("/proc/self/mountinfo", "utf8")
  .split("\n")
  // The options of the mount count, not those of the file system behind it, which the host shares with everybody.
  .filter((line) => / - cgroup2? /.test(line) && line.split(" ")[5].split(",")[0] !== "ro");
note("cgroups are not mounted to be written", writable.length === 0, writable.join(" "));
note("every mount of a file is nosuid", mountsWithout("nosuid").length === 0, mountsWithout("nosuid").join(" "));
try {
  mkdirSync("/sys/fs/cgroup/escape");
  note("a cgroup of one's own", false, "made");
} catch (error) {
  note("a cgroup of one's own", true, error.code);
}

/** Where a setuid program would count: not on a device, and not in what the kernel shows of itself. */
function mountsWithout(option) {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .trim()
    .split("\n")
    .map((line) => ({ at: line.split(" ")[4], options: line.split(" ")[5].split(",") }))
    .filter(({ at, options }) => !options.includes(option) && !/^\/(proc|sys|dev\/\w+$)/.test(at))
    .map(({ at }) => at);
}

process.stdout.write(`${JSON.stringify(outcomes)}\n`);
