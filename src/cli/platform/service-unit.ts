/** The systemd unit of the platform, as `hangar service install` and the Debian package write it. */
import { existsSync, readFileSync } from "node:fs";
import { MALLOC_ENVIRONMENT } from "../program-environment.ts";

export const SERVICE = {
  unit: "hangar.service",
  /** The folder of the administrator's units, which take precedence over those of packages. */
  unit_file: "/etc/systemd/system/hangar.service",
  packaged_unit_file: "/usr/lib/systemd/system/hangar.service",
  data_dir: "/var/lib/hangar",
  config_dir: "/etc/hangar",
  config_file: "/etc/hangar/hangar.toml",
  /** Compiled sources, kept between starts. */
  cache_dir: "/var/cache/hangar",
} as const;

export interface UnitParts {
  /** The Node that runs it, and its program: absolute paths. */
  node: string;
  program: string;
  data_dir: string;
}

/** The initial settings file: nothing is set, so the defaults apply. */
export const FIRST_CONFIG = `# Settings of Hangar; docs/settings.md lists all of them. After a change: systemctl restart hangar
# listen = "127.0.0.1:4280"
# base_url = "https://hangar.example.com"
`;

/** Capabilities that neither the platform nor its children need. */
const DROPPED =
  "CAP_SYS_BOOT CAP_SYS_TIME CAP_SYS_MODULE CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_WAKE_ALARM CAP_BLOCK_SUSPEND";

export function unitFile({ node, program, data_dir }: UnitParts): string {
  const environment = {
    HANGAR_DATA_DIR: data_dir,
    HANGAR_CONFIG: SERVICE.config_file,
    NODE_COMPILE_CACHE: SERVICE.cache_dir,
    ...MALLOC_ENVIRONMENT,
  };
  const variables = Object.entries(environment).map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`);
  return `# Written by Hangar. Changes of your own belong into a drop-in: systemctl edit hangar
[Unit]
Description=Hangar, a machines platform
Wants=network-online.target
After=network-online.target postgresql.service
# Restarts without limit: machines keep running meanwhile, and no operator has to act.
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart=${quoted(node)} ${quoted(program).replaceAll("$", "$$$$")}
${variables.join("\n")}
CacheDirectory=hangar
CacheDirectoryMode=0700
Restart=on-failure
RestartSec=1
RestartSteps=6
RestartMaxDelaySec=60
# A migration of a large database takes its time.
TimeoutStartSec=15min
TimeoutStopSec=90
WatchdogSec=60
# Machines, their monitors and other helpers are in cgroups of their own: what is ended here is the platform alone.
KillMode=mixed
Delegate=yes
OOMPolicy=continue
TasksMax=infinity
LimitNOFILE=1048576
# A core dump would hold the master key.
LimitCORE=0
NoNewPrivileges=yes
CapabilityBoundingSet=~${DROPPED}
# No PrivateTmp, ProtectSystem or others of that kind: each gives every start mounts of its own, and the platform has to
# find those of machines that an earlier start made.

[Install]
WantedBy=multi-user.target
`;
}

/** An argument of a unit: quoted, with % and \\ escaped. */
function quoted(text: string): string {
  const plain = text.replaceAll("%", "%%");
  return /^[\w./=:@%+,-]+$/.test(plain) ? plain : `"${plain.replaceAll(/[\\"]/g, "\\$&")}"`;
}

/** The data dir of the service of this system, or where it would be. */
export function installedDataDir(): string {
  const file = [SERVICE.unit_file, SERVICE.packaged_unit_file].find((one) => existsSync(one));
  return (file === undefined ? undefined : dataDirIn(readFileSync(file, "utf8"))) ?? SERVICE.data_dir;
}

/** The data dir that a unit names. */
export function dataDirIn(unit: string): string | undefined {
  const found = /^Environment="?HANGAR_DATA_DIR=(.*?)"?$/m.exec(unit)?.[1];
  return found?.replaceAll("%%", "%").replaceAll(/\\(.)/g, "$1");
}
