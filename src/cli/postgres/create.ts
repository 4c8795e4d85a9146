import { randomBytes } from "node:crypto";
import { facts } from "../output.ts";
import { firstArgument, numberOption, textOption, type Verb } from "../verb.ts";

const PORT = 5432;

/**
 * A hosted database is an app like any other: a machine with a Postgres image, a password among its secrets, and the
 * mark by which the platform knows to ask it for its metrics.
 */
const postgresCreate: Verb = {
  words: "postgres create",
  summary: "Create an app with a PostgreSQL database and its metrics",
  arguments: [["<name>", "the app's name"]],
  options: [
    ["--org <slug>", "the organization (default: the token's own, or personal)"],
    ["--region <region>", "where it runs"],
    ["--image <image>", "the image (default: postgres:17)"],
    ["--memory <mb>", "its memory, a multiple of 256 (default: 512)"],
    ["--volume <id>", "size of a volume for its data; without one, data is lost with the machine"],
  ],
  examples: ["hangar postgres create ledger"],
  async run({ client }, input) {
    const app_name = firstArgument(input);
    const password = randomBytes(24).toString("base64url");
    const memory_mb = numberOption(input, "memory") ?? 512;
    const volume = textOption(input, "volume");
    await client.call("POST /v1/apps", { body: { app_name, org_slug: textOption(input, "org") } });
    const params = { app_name };
    await client.call("POST /v1/apps/:app_name/secrets", { params, body: { values: { POSTGRES_PASSWORD: password } } });
    const machine = await client.call("POST /v1/apps/:app_name/machines", {
      params,
      body: {
        region: textOption(input, "region"),
        config: {
          image: textOption(input, "image") ?? "postgres:17",
          guest: { memory_mb },
          metadata: { hangar_postgres_port: String(PORT) },
          ...(volume ? { mounts: [{ volume, path: "/var/lib/postgresql" }] } : {}),
        },
      },
    });
    const address = `[${machine.private_ip}]:${PORT}`;
    const url = `postgres://postgres:${password}@${address}/postgres`;
    return {
      data: {
        app_name,
        machine_id: machine.id,
        private_ip: machine.private_ip,
        port: PORT,
        user: "postgres",
        password,
        url,
      },
      text: facts([
        ["app", app_name],
        ["machine", machine.id],
        ["address", address],
        ["user", "postgres"],
        ["password", `${password}   (shown this once; it is the secret POSTGRES_PASSWORD)`],
        ["url", url],
      ]),
    };
  },
};

export const VERBS: readonly Verb[] = [postgresCreate];
