// The system packages that Hangar uses: which are missing, and how this distribution brings them. Runs before anything
// is installed, on Node 18 or later: only node: imports. Names are Debian's; NAMES has those that differ elsewhere.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/** Debian's scripts ask this program before they start a service. */
const POLICY = "/usr/sbin/policy-rc.d";
/** How long apt waits for another one, such as the unattended upgrades of a box that has just booted. */
const LOCK_TIMEOUT_S = 900;

/** Package managers, by what os-release says the distribution is or is like. `installs`: by ourselves, as root. */
const MANAGERS = {
  apt: { ids: ["debian", "ubuntu"], program: "apt-get", line: "apt-get install", installs: true },
  dnf: { ids: ["fedora", "rhel", "centos"], program: "dnf", line: "dnf install", installs: false },
  apk: { ids: ["alpine"], program: "apk", line: "apk add", installs: false },
};

/** Debian's name → the name elsewhere; null where the distribution has no such package. */
const NAMES = {
  dnf: {
    iproute2: "iproute",
    "busybox-static": "busybox",
    "perl-base": "perl-interpreter",
    gocryptfs: null,
    "cryptsetup-bin": "cryptsetup",
  },
  apk: { "busybox-static": "busybox-static", "perl-base": "perl", "cryptsetup-bin": "cryptsetup" },
};

/** How to query each package manager for installed packages. */
const INSTALLED = {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own placeholders.
  apt: (names) => words("dpkg-query", ["-W", "-f", "${Package} ${db:Status-Status}\n", ...names], / installed$/),
  dnf: (names) => words("rpm", ["-q", "--qf", "%{NAME}\n", ...names], /^[\w.+-]+$/),
  apk: (names) => words("apk", ["info", "-e", ...names], /./),
};

/** The first word of each line that matches. */
function words(program, args, pattern) {
  const { stdout } = spawnSync(program, args, { encoding: "utf8" });
  const lines = (stdout ?? "").split("\n").filter((line) => pattern.test(line));
  return new Set(lines.map((line) => line.split(" ")[0]));
}

/** `apt`, `dnf` or `apk` by os-release; undefined on any other distribution. */
export function managerOf(os_release) {
  const value = (key) => new RegExp(`^${key}=["']?([^"'\n]*)`, "m").exec(os_release)?.[1] ?? "";
  const ids = [value("ID"), ...value("ID_LIKE").split(" ")];
  return Object.keys(MANAGERS).find((name) => MANAGERS[name].ids.some((id) => ids.includes(id)));
}

const nameIn = (manager, name) => (Object.hasOwn(NAMES[manager] ?? {}, name) ? NAMES[manager][name] : name);

/** What a person types to get these packages, and which of them the distribution does not have. */
export function installLine(manager, names) {
  const named = names.map((name) => [name, nameIn(manager, name)]);
  const there = named.flatMap(([, own]) => own ?? []);
  const line = MANAGERS[manager] ? `${MANAGERS[manager].line} ${there.join(" ")}` : undefined;
  return { line, absent: named.flatMap(([name, own]) => (own === null ? [name] : [])) };
}

/** Of `wanted` (name → what is lost without it), what is not installed. */
function missingOf(manager, wanted) {
  const names = Object.keys(wanted);
  const own = names.flatMap((name) => nameIn(manager, name) ?? []);
  const have = INSTALLED[manager]?.(own) ?? new Set();
  return names.filter((name) => !have.has(nameIn(manager, name)));
}

/**
 * Brings what is missing of `wanted` as far as it can be had here, each package for itself: one that the distribution
 * lacks, or that cannot be installed, keeps none of the others away. `say` is told what is done and what was not to be
 * had; `told` is a file that remembers what was said, so that it is not said at every start.
 */
export function bringSystemPackages(wanted, { say, told, policy = POLICY }) {
  const manager = managerOf(read("/etc/os-release"));
  const missing = missingOf(manager, wanted);
  const unmet = (names) => `${manager}: ${names.join(" ")}`;
  // A person who cannot have them need not read it at every start.
  if (missing.length === 0 || read(told) === unmet(missing)) return;
  const { installs, program } = MANAGERS[manager] ?? {};
  const may = installs && process.getuid?.() === 0 && has(program);
  const left = may ? installWithApt(missing, wanted, { say, policy }) : missing;
  if (left.length === 0) return;
  say(`${may ? "These could not be installed" : "These system packages are not here"}:\n${costsOf(wanted, left)}`);
  if (!may) say(adviceFor(manager, left));
  // What apt knows and could not bring now, because the network was away, is tried again.
  if (!may || left.every((name) => !candidates(left).has(name))) writeFileSync(told, unmet(left));
}

function adviceFor(manager, names) {
  const { line, absent } = installLine(manager, names);
  if (!line) return "Your distribution is not one whose packages we know: install what has the same programs.";
  return `As root: ${line}${absent.length > 0 ? ` (it has no ${absent.join(", ")})` : ""}`;
}

const costsOf = (wanted, names) => names.map((name) => `  ${name}: without it, ${wanted[name]}`).join("\n");

/** Answers what is still missing. */
function installWithApt(missing, wanted, { say, policy }) {
  say(`Installing system packages (once; HANGAR_SKIP_SYSTEM=1 skips this): ${missing.join(" ")}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const options = ["-qq", "-o", `DPkg::Lock::Timeout=${LOCK_TIMEOUT_S}`];
  const apt = (...args) =>
    spawnSync("apt-get", [...options, ...args], { env, stdio: ["ignore", "ignore", 2] }).status === 0;
  const install = (names) => apt("install", "-y", "--no-install-recommends", ...names);
  // The package lists may be old or empty: fetch them only when something cannot be found.
  if (missing.some((name) => !candidates(missing).has(name))) apt("update");
  const found = missing.filter((name) => candidates(missing).has(name));
  // With -qq apt waits in silence.
  const { stderr } = spawnSync("apt-get", ["-qq", "check"], { env: { ...env, LC_ALL: "C" }, encoding: "utf8" });
  if (/Could not get lock|Unable to acquire/.test(stderr)) say("Waiting for another program that installs packages …");
  const services = withoutStarting(policy);
  try {
    // Old lists name versions that are gone; and where all together fail, the others still come.
    if (found.length > 0 && !install(found) && !(apt("update") && install(found)))
      for (const name of found) install([name]);
  } finally {
    services.end();
  }
  return missingOf("apt", Object.fromEntries(missing.map((name) => [name, wanted[name]])));
}

/** Packages of which apt knows a version that can be installed. */
function candidates(names) {
  const { stdout } = spawnSync("apt-cache", ["policy", ...names], {
    encoding: "utf8",
    env: { ...process.env, LC_ALL: "C" },
  });
  const blocks = (stdout ?? "").split(/\n(?=\S)/);
  return new Set(blocks.filter((one) => /Candidate: (?!\(none\))/.test(one)).map((one) => one.split(":")[0]));
}

/**
 * Keeps dpkg from starting the servers among the packages, which are for tests, until `end`. Debian's scripts run `policy`
 * for that. It outlives a kill of this process, so it takes effect only while this process runs, and then removes itself.
 */
function withoutStarting(policy) {
  if (existsSync(policy)) return { end() {} };
  const started = startTimeOf(process.pid);
  const script = `#!/bin/sh
# Of Hangar, while its process ${process.pid} installs packages: services are not started.
if read -r stat < /proc/${process.pid}/stat; then
  set -- \${stat##*) }
  shift 19
  [ "$1" = ${started} ] && exit 101
fi 2> /dev/null
rm -f "$0"
exit 0
`;
  writeFileSync(policy, script, { mode: 0o755 });
  return { end: () => rmSync(policy, { force: true }) };
}

/** When a process started, in ticks since boot: tells it from a later process with the same pid. */
const startTimeOf = (pid) => read(`/proc/${pid}/stat`).split(") ").at(-1).split(" ")[19];

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const has = (program) => ["/usr/bin", "/bin", "/sbin", "/usr/sbin"].some((dir) => existsSync(`${dir}/${program}`));
