/** Recipes of base images: their Debian packages, and the command of a machine. */
import { START_POSTGRES, START_REDIS } from "./start-scripts.ts";

export interface BaseRecipe {
  summary: string;
  packages: readonly string[];
  /** The tag of its name, if not the release. */
  tag?: string;
  /** Files that exist before the packages are installed, and files that are added after. */
  before?: Readonly<Record<string, string>>;
  files?: Readonly<Record<string, string>>;
  /** Shell lines that are run on the finished root file system; `$1` is its folder. */
  hooks?: readonly string[];
  config: {
    Cmd?: readonly string[];
    Entrypoint?: readonly string[];
    Env?: readonly string[];
    StopSignal?: string;
    WorkingDir?: string;
    ExposedPorts?: Readonly<Record<string, object>>;
  };
}

const SPRITE_PACKAGES =
  "bash-completion build-essential ca-certificates curl file git iproute2 jq less nano nodejs npm openssh-client procps psmisc python3 python3-pip python3-venv ripgrep rsync sqlite3 sudo tmux unzip vim-tiny wget xz-utils zip".split(
    " ",
  );
const POSTGRES_PORT = 5432;
const REDIS_PORT = 6379;

export const BASES: Readonly<Record<string, BaseRecipe>> = {
  debian: {
    summary: "Debian with certificates of public authorities",
    packages: ["ca-certificates"],
    config: { Cmd: ["bash"] },
  },
  node: {
    summary: "Debian's Node.js and npm",
    packages: ["ca-certificates", "nodejs", "npm"],
    config: { Cmd: ["node"], Env: ["NODE_ENV=production"] },
  },
  python: {
    summary: "Debian's Python 3 with pip and venv",
    packages: ["ca-certificates", "python3", "python3-pip", "python3-venv"],
    // Debian forbids pip to install beside its own packages; in an image that does no harm.
    config: { Cmd: ["python3"], Env: ["PYTHONUNBUFFERED=1", "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_NO_CACHE_DIR=1"] },
  },
  go: {
    summary: "Debian's Go compiler, to build with",
    packages: ["ca-certificates", "golang-go"],
    config: { Cmd: ["bash"], Env: ["GOTOOLCHAIN=local"] },
  },
  ruby: {
    summary: "Debian's Ruby with Bundler, Rack and a compiler for gems",
    packages: ["ca-certificates", "ruby", "ruby-dev", "bundler", "ruby-rack", "ruby-webrick", "build-essential"],
    config: { Cmd: ["ruby"] },
  },
  php: {
    summary: "Debian's PHP for the command line, with its own server, and Composer",
    packages: ["ca-certificates", "php-cli", "composer"],
    config: { Cmd: ["php", "-a"] },
  },
  sprite: {
    summary: "everyday tools for sprites: Git, Python, Node.js, compilers, curl, editors",
    tag: "latest",
    packages: SPRITE_PACKAGES,
    // Whoever works in a sprite owns it: pip may install beside Debian's packages.
    config: { Cmd: ["bash"], Env: ["PIP_BREAK_SYSTEM_PACKAGES=1", "LANG=C.UTF-8"], WorkingDir: "/root" },
  },
  static: {
    summary: "BusyBox, whose httpd serves files",
    packages: ["busybox"],
    config: { Cmd: ["busybox", "sh"] },
  },
  redis: {
    summary: "Debian's Redis, its data in /data, its password REDIS_PASSWORD if there is one",
    packages: ["redis-server"],
    files: { "/usr/local/bin/start-redis": START_REDIS },
    config: { Entrypoint: ["/usr/local/bin/start-redis"], ExposedPorts: { [`${REDIS_PORT}/tcp`]: {} } },
  },
  postgres: {
    summary: "Debian's PostgreSQL, its data in /data, its password POSTGRES_PASSWORD",
    packages: ["postgresql"],
    // The package would create a cluster and a key that every machine of the image shares.
    before: { "/etc/postgresql-common/createcluster.conf": "create_main_cluster = false\n" },
    files: { "/usr/local/bin/start-postgres": START_POSTGRES },
    hooks: ['rm -f "$1"/etc/ssl/private/ssl-cert-snakeoil.key "$1"/etc/ssl/certs/ssl-cert-snakeoil.pem'],
    config: {
      Entrypoint: ["/usr/local/bin/start-postgres"],
      // A fast shutdown: open transactions are rolled back, nothing has to be recovered at the next start.
      StopSignal: "SIGINT",
      ExposedPorts: { [`${POSTGRES_PORT}/tcp`]: {} },
    },
  },
};
