/** The Debian package: /usr/lib/hangar, the command, the service, and what is done when it comes and goes. */
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { FIRST_CONFIG, SERVICE, unitFile } from "../../src/cli/platform/service-unit.ts";
import { CLAIMS_DIR } from "../../src/core/host-claims.ts";
import type { Packing } from "../pack.ts";
import { launcher } from "./bundle.ts";
import { runTool } from "./run-tool.ts";
import { ownPackage, root } from "./stage.ts";

const HOME = "/usr/lib/hangar";
const DEBIAN_ARCH: Record<string, string> = { x64: "amd64", arm64: "arm64" };

/** Without these no machine starts, or machines are not kept apart. The rest makes it better, and is recommended. */
const NEEDED = new Set([
  "runc",
  "iproute2",
  "nftables",
  "e2fsprogs",
  "busybox-static",
  "util-linux",
  "bash",
  "perl-base",
]);
/** What the pinned Node and the scripts below use. */
const OWN_NEEDS = ["libc6", "libstdc++6", "mount", "init-system-helpers"];

const POSTINST = `#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
if deb-systemd-helper --quiet was-enabled ${SERVICE.unit}; then
  deb-systemd-helper enable ${SERVICE.unit} > /dev/null || true
else
  deb-systemd-helper update-state ${SERVICE.unit} > /dev/null || true
fi
[ -d /run/systemd/system ] || exit 0
systemctl --system daemon-reload
# Machines run on while the platform is restarted. A service that somebody disabled is left alone.
if [ -z "$2" ]; then action=start; else action=restart; fi
deb-systemd-invoke $action ${SERVICE.unit} || echo "hangar: the service does not start; see: journalctl -u hangar" >&2
`;

const PRERM = `#!/bin/sh
set -e
[ "$1" = remove ] || exit 0
if [ -d /run/systemd/system ]; then deb-systemd-invoke stop ${SERVICE.unit}; fi
# Nothing would look after machines any more. Their disks stay, until the package is purged.
${HOME}/bin/hangar down --all --data-dir ${SERVICE.data_dir}
`;

const POSTRM = `#!/bin/sh
set -e
case "$1" in
  remove)
    rm -rf ${SERVICE.cache_dir}
    ;;
  purge)
    if [ -x /usr/bin/deb-systemd-helper ]; then deb-systemd-helper purge ${SERVICE.unit} > /dev/null || true; fi
    rm -rf --one-file-system ${SERVICE.data_dir} ${SERVICE.cache_dir} ${SERVICE.config_dir}
    claims=${CLAIMS_DIR}
    if [ -d $claims ]; then
      find $claims -type l -lname '${SERVICE.data_dir}/*' -delete
      # Another installation of this host may have claims too.
      [ -n "$(find $claims -type l)" ] || rm -rf $claims
    fi
    ;;
esac
if [ -d /run/systemd/system ]; then systemctl --system daemon-reload; fi
`;

export function makeDeb({ to, arch, version, work }: Packing, bundle: string): string {
  const stage = join(work, "deb");
  const put = (path: string, text: string, mode = 0o644): void => {
    mkdirSync(dirname(join(stage, path)), { recursive: true });
    writeFileSync(join(stage, path), text);
    chmodSync(join(stage, path), mode);
  };
  mkdirSync(stage, { recursive: true });
  cpSync(bundle, join(stage, HOME), { recursive: true, verbatimSymlinks: true });
  put("usr/bin/hangar", launcher(arch, HOME), 0o755);
  const node = `${HOME}/node_modules/node-linux-${arch}/bin/node`;
  put(SERVICE.packaged_unit_file, unitFile({ node, program: `${HOME}/src/main.js`, data_dir: SERVICE.data_dir }));
  put(SERVICE.config_file, FIRST_CONFIG, 0o600);
  put("usr/share/doc/hangar/copyright", readFileSync(join(root, "LICENSE"), "utf8"));
  put("DEBIAN/control", control(stage, arch, version));
  put("DEBIAN/conffiles", `${SERVICE.config_file}\n`);
  for (const [name, text] of Object.entries({ postinst: POSTINST, prerm: PRERM, postrm: POSTRM }))
    put(`DEBIAN/${name}`, text, 0o755);
  const file = join(to, `hangar_${version}_${DEBIAN_ARCH[arch]}.deb`);
  runTool("dpkg-deb", ["--root-owner-group", "-Zzstd", "-z9", "--build", stage, file]);
  return file;
}

function control(stage: string, arch: string, version: string): string {
  const { description } = ownPackage();
  const packages = JSON.parse(readFileSync(join(root, "scripts/system-packages.json"), "utf8")) as {
    runtime: Record<string, string>;
  };
  const names = Object.keys(packages.runtime);
  const kibibytes = runTool("du", ["-sk", stage]).split("\t")[0];
  return `Package: hangar
Version: ${version}
Architecture: ${DEBIAN_ARCH[arch]}
Maintainer: The Hangar project
Installed-Size: ${kibibytes}
Section: admin
Priority: optional
Depends: ${[...OWN_NEEDS, ...names.filter((name) => NEEDED.has(name))].join(", ")}
Recommends: ${names.filter((name) => !NEEDED.has(name)).join(", ")}
Description: ${String(description)}
 Runs machines from container images with an HTTP API, private networks, volumes,
 a proxy, metrics and a dashboard. Brings the Node that it runs on.
`;
}
