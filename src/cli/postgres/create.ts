import { randomBytes } from "node:crypto";
import type { Machine, MachineConfig } from "#client/api.ts";
import { untilHealthy } from "../deploy/wait.ts";
import { facts } from "../output.ts";
import { type Context, firstArgument, type Input, numberOption, textOption, UsageError, type Verb } from "../verb.ts";
import { PORT, PORT_KEY, placeOf } from "./find.ts";

/** Images of `hangar images base postgres`, whose data folder differs from that of other PostgreSQL images. */
const OWN_IMAGE = "hangar/postgres:";
const OWN_PATH = "/data";
const USUAL_PATH = "/var/lib/postgresql";
const USUAL_IMAGE = "postgres:17";
const VOLUME = "postgres_data";
const SIZE_GB = 1;
const MEMORY_MB = 512;
const KEEP_DAYS = 7;

/**
 * Creates an app with a machine, a volume, a password among its secrets, and the metadata by which the platform finds
 * it to collect its metrics.
 */
export const postgresCreate: Verb = {
  words: "postgres create",
  summary: "Create an app with a PostgreSQL database on a volume, backed up daily",
  arguments: [["<name>", "the app's name"]],
  options: [
    ["--org <slug>", "the organization (default: the token's own, or personal)"],
    ["--network <name>", "its private network, that of the apps which use it (default: default)"],
    ["--region <region>", "where it runs"],
    ["--image <image>", "the image (default: one of `hangar images base postgres`, else postgres:17)"],
    ["--memory <mb>", `its memory, a multiple of 256 (default: ${MEMORY_MB})`],
    ["--size <gb>", `size of the volume for its data (default: ${SIZE_GB})`],
    ["--volume <id>", "this volume for its data, instead of a new one"],
    ["--no-volume", "no volume: its data is lost with the machine"],
    ["--keep <days>", `how long daily backups are kept (default: ${KEEP_DAYS})`],
    ["--detach", "do not wait until it accepts connections"],
  ],
  examples: ["hangar postgres create ledger", "hangar postgres create books --size 10 --keep 30"],
  async run(context, input) {
    const app_name = firstArgument(input);
    const sizes = sizesOf(input);
    const password = randomBytes(24).toString("base64url");
    const image = textOption(input, "image") ?? (await ownImage(context)) ?? USUAL_IMAGE;
    const org_slug = textOption(input, "org");
    const network = textOption(input, "network");
    const body = { app_name, ...(org_slug ? { org_slug } : {}), ...(network ? { network } : {}) };
    await context.client.call("POST /v1/apps", { body });
    const machine = await started(context, input, { app_name, image, password, ...sizes }).catch(
      async (thrown: unknown) => {
        // The app is still empty: delete it, so that the same command can be repeated.
        await context.client.call("DELETE /v1/apps/:app_name", { params: { app_name }, query: { force: true } });
        throw thrown;
      },
    );
    const url = `postgres://postgres:${password}@${app_name}.internal:${PORT}/postgres`;
    const { mounts = [] } = machine.config as unknown as MachineConfig;
    const volume = mounts[0]?.volume;
    return {
      data: {
        app_name,
        machine_id: machine.id,
        private_ip: machine.private_ip,
        port: PORT,
        user: "postgres",
        password,
        url: `postgres://postgres:${password}@[${machine.private_ip}]:${PORT}/postgres`,
        internal_url: url,
        volume: volume ?? null,
        image,
      },
      text: facts([
        ["app", app_name],
        ["machine", `${machine.id}, ${image}`],
        ["volume", volume === undefined ? "none: its data is lost with the machine" : `${volume}, a snapshot a day`],
        ["url", `${url}   (shown this once; the password is the secret POSTGRES_PASSWORD)`],
        ["next", `hangar postgres attach ${app_name} --app <app>; hangar postgres connect ${app_name}`],
      ]),
    };
  },
};

/** An image that `hangar images base` made on the platform, so that no registry is needed. */
async function ownImage({ client }: Context): Promise<string | undefined> {
  for await (const { name } of client.list("GET /v1/images", {})) if (name.startsWith(OWN_IMAGE)) return name;
  return undefined;
}

interface Sizes {
  memory_mb: number;
  size_gb: number;
  keep_days: number;
}

interface Wanted extends Sizes {
  app_name: string;
  image: string;
  password: string;
}

/** Validates the sizes before anything is created. */
function sizesOf(input: Input): Sizes {
  const size_gb = numberOption(input, "size") ?? SIZE_GB;
  if (size_gb < 1) throw new UsageError("--size is at least 1");
  const memory_mb = numberOption(input, "memory") ?? MEMORY_MB;
  return { memory_mb, size_gb, keep_days: numberOption(input, "keep") ?? KEEP_DAYS };
}

async function started(context: Context, input: Input, wanted: Wanted): Promise<Machine> {
  const { app_name, image, password, memory_mb } = wanted;
  const { client } = context;
  const params = { app_name };
  const region = textOption(input, "region");
  await client.call("POST /v1/apps/:app_name/secrets", { params, body: { values: { POSTGRES_PASSWORD: password } } });
  const volume = await volumeFor(context, input, wanted);
  const path = image.startsWith(OWN_IMAGE) ? OWN_PATH : USUAL_PATH;
  const config: MachineConfig = {
    image,
    guest: { memory_mb },
    metadata: { [PORT_KEY]: String(PORT) },
    restart: { policy: "always" },
    // A fast shutdown: open transactions are rolled back, and nothing has to be recovered at the next start.
    stop_config: { signal: "SIGINT", timeout: "30s" },
    checks: { postgres: { type: "tcp", port: PORT, interval: "2s", timeout: "2s", grace_period: "1s" } },
    ...(volume === undefined ? {} : { mounts: [{ volume, path }] }),
  };
  const machine = await client.call("POST /v1/apps/:app_name/machines", { params, body: { region, config } });
  if (input.options["detach"] !== true) await untilHealthy(placeOf(context, app_name), machine);
  return machine;
}

async function volumeFor(
  { client }: Context,
  input: Input,
  { app_name, size_gb, keep_days }: Wanted,
): Promise<string | undefined> {
  const given = input.options["volume"];
  if (given === false) return undefined;
  if (typeof given === "string") return given;
  const region = textOption(input, "region");
  const body = {
    name: VOLUME,
    size_gb,
    snapshot_retention: keep_days,
    require_unique_zone: false,
    ...(region ? { region } : {}),
  };
  const { id } = await client.call("POST /v1/apps/:app_name/volumes", { params: { app_name }, body });
  return id;
}
