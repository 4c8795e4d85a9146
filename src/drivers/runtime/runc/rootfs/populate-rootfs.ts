/** Writes files of the platform and the config into a machine's root file system before it boots. */

import { gatewayAddress } from "#machines/names.ts";
import type { Launch } from "#machines/runtime/driver.ts";
import type { GuestTree } from "../../../linux/guest-tree.ts";
import { RUNC_LIMITS } from "../limits.ts";

/** Mount points that are created if the image lacks them. */
const MOUNT_POINTS = ["/dev", "/proc", "/sys"];

/** The name under which existing programs look for `/.svc`, as `FLY_` variables are for `SVC_` ones. */
const SECOND_NAME = "/.fly";

export function populateRootfs(tree: GuestTree, launch: Launch, owner: number, folders: readonly string[]): void {
  const root = { mode: 0o644, uid: owner, gid: owner };
  for (const folder of [...MOUNT_POINTS, ...folders]) tree.folder(folder, owner, owner);
  if (tree.kind("/tmp") === undefined) tree.folder("/tmp", owner, owner, 0o1777);
  for (const [path, text] of Object.entries(platformFiles(launch))) {
    tree.replace(path, { ...root, content: Buffer.from(text) });
  }
  let bytes = 0;
  for (const { guest_path, mode, ...from } of launch.config.files ?? []) {
    const content = contentOf(launch, guest_path, from);
    bytes += content.length;
    if (bytes > RUNC_LIMITS.files_bytes) {
      throw new Error(`config.files hold more than ${RUNC_LIMITS.files_bytes} bytes together (limit files_bytes)`);
    }
    tree.write(guest_path, { ...root, mode: mode ?? 0o644, content });
  }
  tree.link(SECOND_NAME, ".svc", owner, owner);
}

function contentOf(
  { secrets }: Launch,
  path: string,
  { raw_value, secret_name }: { raw_value?: string; secret_name?: string },
): Buffer {
  if (raw_value !== undefined) return Buffer.from(raw_value, "base64");
  const secret = secrets[secret_name ?? ""];
  if (secret === undefined) {
    throw new Error(`config.files: ${path} wants the secret ${secret_name}, and the app has none of that name`);
  }
  return Buffer.from(secret, "base64");
}

function platformFiles({ id, app_name, private_ip, config }: Launch): Record<string, string> {
  const { dns } = config;
  const hostname = dns?.hostname || id;
  const full = dns?.hostname_fqdn || `${id}.vm.${app_name}.internal`;
  const servers = dns?.nameservers?.length ? dns.nameservers : [gatewayAddress(private_ip)];
  return {
    "/etc/hostname": `${hostname}\n`,
    "/etc/hosts": [
      "127.0.0.1 localhost",
      "::1 localhost ip6-localhost ip6-loopback",
      `${private_ip} ${full} ${hostname} svc-local-6pn fly-local-6pn`,
      "",
    ].join("\n"),
    "/etc/resolv.conf": [
      ...(dns?.searches?.length ? [`search ${dns.searches.join(" ")}`] : []),
      ...servers.map((server) => `nameserver ${server}`),
      ...(dns?.options?.length ? [`options ${dns.options.map(resolverOption).join(" ")}`] : []),
      "",
    ].join("\n"),
  };
}

/** An option in resolv.conf form, such as `rotate` or `ndots:2`. */
function resolverOption(option: string | { name: string; value?: string }): string {
  if (typeof option === "string") return option;
  return option.value ? `${option.name}:${option.value}` : option.name;
}
