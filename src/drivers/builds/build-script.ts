/** The script that runs in the container of a build. All user input is quoted. */
import type { BuildRequest } from "#builds/builder.ts";

/** Mount points of the host's files and of the build's own disk in the container. */
export const INPUT = "/.svc";
export const DISK = "/var/lib/containers";
/** The image, from the root of that disk: an OCI layout, and the config with all that Docker's format has. */
export const LAYOUT = "/out/image";
export const CONFIG = "/out/config.json";
/** The file in INPUT with the layers that the layout need not have, one in each line, in hex digits. */
export const KNOWN_LAYERS = "known-layers";

export interface BaseImage {
  /** As the Dockerfile has it. */
  name: string;
  /** `sha256:…` */
  digest: string;
  env: Readonly<Record<string, string>>;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The name under which buildah finds a base image in its own storage. */
function storageName(name: string): string {
  const [first = ""] = name.split("/");
  const qualified = name.includes("/") && /[.:]|^localhost$/.test(first) ? name : `localhost/${name}`;
  return /:[^/]*$|@/.test(qualified) ? qualified : `${qualified}:latest`;
}

const tagOf = ({ digest }: BaseImage): string => `localhost/hangar-base:${digest.slice("sha256:".length)}`;

/** Secrets come as variables in base64 and become files in memory; their names are numbers in the order given. */
export const secretVariable = (index: number): string => `BUILD_SECRET_${index}`;

export function buildScript(request: BuildRequest, bases: readonly BaseImage[], cache_full_percent: number): string {
  const { target, args, no_cache } = request;
  const secrets = Object.keys(request.secrets);
  const tag = `localhost/hangar-output/${request.app_name}:latest`;
  const options = [
    "--layers",
    // Without it SHELL and HEALTHCHECK are ignored: the OCI format has no fields for them.
    "--format docker",
    // Who may change the root directory leaves that of the step, and writes to the cache that other apps build from.
    "--cap-drop CAP_SYS_CHROOT",
    ...(no_cache ? ["--no-cache"] : []),
    ...(target === undefined ? [] : ["--target", quoted(target)]),
    ...Object.entries(args).flatMap(([name, value]) => ["--build-arg", quoted(`${name}=${value}`)]),
    ...secrets.flatMap((id, index) => ["--secret", quoted(`id=${id},src=/dev/shm/secrets/${index}`)]),
    `--ignorefile ${INPUT}/ignore`,
    `-f ${INPUT}/Dockerfile`,
    `-t ${quoted(tag)}`,
  ];
  return [
    "set -eu",
    `export HOME=/root TMPDIR=${DISK}/tmp BUILDAH_ISOLATION=chroot STORAGE_DRIVER=overlay`,
    `rm -rf ${DISK}/tmp ${DISK}/out`,
    `mkdir -p ${DISK}/tmp ${DISK}/out /dev/shm/secrets`,
    ...secrets.flatMap((_, index) => [
      `printf %s "$${secretVariable(index)}" | base64 -d > /dev/shm/secrets/${index}`,
      `unset ${secretVariable(index)}`,
    ]),
    // What a build that was killed left in its storage; a storage that cannot be read is begun anew.
    `buildah rm -a >/dev/null 2>&1 || rm -rf ${DISK}/storage`,
    `used() { df -P ${DISK} | awk 'NR == 2 { sub("%", "", $5); print $5 }'; }`,
    `if [ "$(used)" -ge ${cache_full_percent} ]; then`,
    "  echo 'the layer cache is nearly full: removing its oldest images'",
    "  for image in $(buildah images -a -q | tac); do",
    `    [ "$(used)" -ge ${cache_full_percent} ] || break`,
    '    buildah rmi -f "$image" >/dev/null 2>&1 || true',
    "  done",
    "fi",
    ...bases.flatMap((base, index) => [
      `buildah inspect --type image ${tagOf(base)} >/dev/null 2>&1 ||`,
      // Buildah makes a name of the path, and names begin with a letter.
      `  { ln -s ${INPUT}/bases/${index} /tmp/base${index}; buildah tag "$(buildah pull -q oci:/tmp/base${index})" ${tagOf(base)}; }`,
      `buildah tag ${tagOf(base)} ${quoted(storageName(base.name))}`,
    ]),
    `buildah bud ${options.join(" ")} ${INPUT}/context`,
    "rm -rf /dev/shm/secrets",
    `buildah inspect --type image --format '{{.Config}}' ${quoted(tag)} > ${DISK}${CONFIG}`,
    // Buildah writes no layer whose file it finds, and looks at nothing but the name.
    `blobs=${DISK}${LAYOUT}/blobs/sha256`,
    'mkdir -p "$blobs"',
    `while read -r layer; do : > "$blobs/$layer"; done < ${INPUT}/${KNOWN_LAYERS}`,
    // It compresses all others, in spite of -D.
    `buildah push -q --format oci --compression-format zstd --compression-level 1 ${quoted(tag)} oci:${DISK}${LAYOUT}:image`,
    "",
  ].join("\n");
}
