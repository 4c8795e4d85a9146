/**
 * Programs that read what tenants sent, such as Git: with Debian's util-linux, in namespaces of their own, as a user
 * without rights, with resource limits, in a root that holds the system's programs and one folder.
 */
import { spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { APP_DIR, type ConfinedProgram, type Confinement } from "#git/confinement.ts";
import type { GitLimits } from "#git/limits.ts";
import { programFile } from "../choice.ts";

interface Parts {
  /** An empty folder that every root is mounted on, each in its own mount namespace. */
  root: string;
  /** Where the platform is installed: its command runs confined as well. */
  installed: string;
  limits: GitLimits;
}

/**
 * Debian's user `nobody`. It owns repositories but cannot reach them: they are in the data dir, which only root may
 * enter.
 */
const NOBODY = 65534;
const NEEDED = ["git", "unshare", "setpriv", "prlimit", "mount", "chroot"];
const [HANGAR, NODE] = ["/hangar", "/hangar-node"];

/**
 * All arguments after the first two come from this file. Nothing of the host is writable, and no mount of it remains.
 */
const ENTER = `set -eu
root=$1 dir=$2
shift 2
mount -t tmpfs -o size=16m,mode=755 hangar-git "$root"
mkdir "$root/usr" "$root/etc" "$root${APP_DIR}" "$root/proc" "$root/dev"
mkdir -m 1777 "$root/tmp"
mount -o bind,ro,nosuid,nodev /usr "$root/usr"
for name in bin sbin lib lib64; do
  if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "$root/$name"
  elif [ -d "/$name" ]; then mkdir "$root/$name"; mount -o bind,ro,nosuid,nodev "/$name" "$root/$name"
  fi
done
for name in null zero urandom; do
  : > "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
mount -o bind,nosuid,nodev "$dir" "$root${APP_DIR}"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir "$root$2"; else : > "$root$2"; fi
  mount -o bind,ro,nosuid,nodev "$1" "$root$2"
  shift 2
done
shift
exec chroot "$root" "$@"`;

/** The namespaces end with the first process in them, that one with `unshare`, and that with the platform. */
const NAMESPACES = "--pdeathsig KILL unshare --mount --pid --ipc --uts --fork --kill-child --propagation private";

/** The signal of `--kill-child` is asked for once more: the kernel forgets it when the user changes (prctl(2)). */
const WITHOUT_RIGHTS = `setpriv --pdeathsig KILL --reuid=${NOBODY} --regid=${NOBODY} --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all`;

export class NamespaceConfinement implements Confinement {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  problem(): string | undefined {
    if (process.platform !== "linux" || process.getuid?.() !== 0) return "the platform does not run as root on Linux";
    const missing = NEEDED.find((name) => !programFile(name));
    if (missing === "git") return "git is not installed (apt-get install git)";
    return missing && `${missing} is not installed (apt-get install util-linux mount coreutils)`;
  }

  adopt(dir: string): void {
    chownSync(dir, NOBODY, NOBODY);
  }

  spawn({ program, args, dir, cwd = APP_DIR, env = {}, has_channel, has_network, signal }: ConfinedProgram) {
    const { root, installed } = this.#parts;
    mkdirSync(root, { recursive: true, mode: 0o755 });
    const more = program === "hangar" ? [installed, HANGAR, process.execPath, NODE] : [];
    const certificates = has_network && existsSync("/etc/ssl") ? ["/etc/ssl", "/etc/ssl"] : [];
    const message =
      program === "git"
        ? ["git", ...args]
        : [NODE, "--max-old-space-size=512", join(HANGAR, "bin/hangar.mjs"), ...args];
    return spawn(
      "setpriv",
      [
        ...NAMESPACES.split(" "),
        ...(has_network ? [] : ["--net"]),
        ...["sh", "-c", ENTER, "confine", root, dir].concat(more, certificates, "--"),
        ...WITHOUT_RIGHTS.split(" "),
        ...this.#resources(program),
        "env",
        "-C",
        cwd,
        ...message,
      ],
      {
        cwd: "/",
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/tmp", LC_ALL: "C.UTF-8", ...env },
        stdio: ["pipe", "pipe", "pipe", ...(has_channel ? (["pipe"] as const) : [])],
        signal,
        killSignal: "SIGKILL",
      },
    );
  }

  /** Node reserves more address space than it uses, so it has a limit of its own. */
  #resources(program: ConfinedProgram["program"]): string[] {
    const { git_cpu_s, repository_bytes, git_memory_bytes } = this.#parts.limits;
    const limits = { core: 0, nofile: 1024, nproc: 1024, cpu: git_cpu_s, fsize: repository_bytes };
    const wanted = program === "git" ? { ...limits, as: git_memory_bytes } : limits;
    return ["prlimit", ...Object.entries(wanted).map(([name, value]) => `--${name}=${value}`), "--"];
  }
}
