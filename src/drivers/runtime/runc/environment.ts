/** The environment variables of a machine's processes. */

import { SQLITE_SECRETS } from "#core/sqlite-node.ts";
import { sizeOf } from "#machines/config/config.ts";
import type { Launch } from "#machines/runtime/driver.ts";
import type { ImageConfig } from "#machines/runtime/image-source.ts";

type Process = NonNullable<Launch["config"]["processes"]>[number];

/** Values by the name after `SVC_` and `FLY_`: existing programs read the second. */
const FACTS: Record<string, (launch: Launch) => string> = {
  APP_NAME: ({ app_name }) => app_name,
  MACHINE_ID: ({ id }) => id,
  ALLOC_ID: ({ id }) => id,
  MACHINE_NAME: ({ name }) => name,
  MACHINE_VERSION: ({ instance_id }) => instance_id,
  REGION: ({ region }) => region,
  PRIVATE_IP: ({ private_ip }) => private_ip,
  PUBLIC_IP: () => "",
  IMAGE_REF: ({ config }) => config.image,
  PROCESS_GROUP: ({ config }) =>
    config.env?.["FLY_PROCESS_GROUP"] ??
    config.metadata?.["fly_process_group"] ??
    config.metadata?.["process_group"] ??
    "app",
  VM_MEMORY_MB: ({ config }) => String(sizeOf(config).memory_mb),
};

/** Fields that `env_from` may refer to. */
const FIELDS: Record<string, string> = {
  id: "MACHINE_ID",
  version: "MACHINE_VERSION",
  app_name: "APP_NAME",
  private_ip: "PRIVATE_IP",
  region: "REGION",
  image: "IMAGE_REF",
};

/** The environment of one process; later entries win. */
export function environmentOf(launch: Launch, image: ImageConfig, process: Process): Record<string, string> {
  const { config } = launch;
  const facts = Object.entries(FACTS).map(([name, fact]) => [name, fact(launch)] as const);
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOSTNAME: launch.id,
    PRIMARY_REGION: launch.region,
    ...(config.init?.tty ? { TERM: "xterm" } : {}),
    ...image.env,
    ...config.env,
    ...(process.ignore_app_secrets ? {} : ownSecrets(launch)),
    ...process.env,
    ...referred(launch, process),
    ...chosen(launch, process),
    ...Object.fromEntries(
      facts.flatMap(([name, value]) => [
        [`SVC_${name}`, value],
        [`FLY_${name}`, value],
      ]),
    ),
  };
}

/** Credentials of backups are the node's alone. */
function ownSecrets({ config, secrets }: Launch): Record<string, string> {
  if (config.sqlite?.backup === undefined) return secrets;
  return Object.fromEntries(Object.entries(secrets).filter(([name]) => !SQLITE_SECRETS.includes(name)));
}

function referred(launch: Launch, { env_from }: Process): Record<string, string> {
  const found = (env_from ?? []).flatMap(({ env_var, field_ref }) => {
    const fact = FACTS[FIELDS[field_ref ?? ""] ?? ""];
    return env_var && fact ? [[env_var, fact(launch)]] : [];
  });
  return Object.fromEntries(found) as Record<string, string>;
}

function chosen(launch: Launch, { secrets }: Process): Record<string, string> {
  const found = (secrets ?? []).map(({ env_var, name }) => {
    const value = launch.secrets[name ?? env_var];
    if (value === undefined)
      throw new Error(`a process wants the secret ${name ?? env_var}, and the app has none of that name`);
    return [env_var, value];
  });
  return Object.fromEntries(found) as Record<string, string>;
}
