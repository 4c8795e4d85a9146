/** A database and a role of its own for each app; the app finds its URL among its secrets. */
import { randomBytes } from "node:crypto";
import { ClientError } from "#client/client.ts";
import { type Context, firstArgument, type Input, neededApp, textOption, UsageError, type Verb } from "../verb.ts";
import { identifier, literal, PORT, POSTGRES, sql } from "./find.ts";

const APP: readonly [string, string] = ["-a, --app <app>", "the app that uses the database"];
const VARIABLE = "DATABASE_URL";
const MOST_NAME_CHARS = 63;

/** An app `web-shop` has the role, and usually the database, `web_shop`. PostgreSQL's own role names are reserved. */
export function roleOf(app: string): string {
  const name = app.replaceAll("-", "_");
  return /^(postgres$|pg_)/.test(name) ? `app_${name}` : name;
}

interface Attached {
  postgres: string;
  app: string;
  role: string;
  database: string;
  variable: string;
}

export const postgresAttach: Verb = {
  words: "postgres attach",
  summary: "Create a database and a role for an app; their URL becomes a secret of the app",
  arguments: [POSTGRES],
  options: [
    APP,
    ["--database <name>", "the database (default: the app's name, with _ for -)"],
    ["--variable <name>", `the secret (default: ${VARIABLE})`],
  ],
  examples: ["hangar postgres attach ledger --app web"],
  async run(context, input) {
    const wanted = attachedOf(input);
    const { postgres, app, role, database, variable } = wanted;
    await refuseApart(context, postgres, app);
    const { client } = context;
    const params = { app_name: app };
    for await (const { name } of client.list("GET /v1/apps/:app_name/secrets", { params }))
      if (name === variable)
        throw new UsageError(
          `${app} has a secret ${variable} already: --variable names another, or \`hangar postgres detach ${postgres} --app ${app}\``,
        );
    const password = randomBytes(24).toString("base64url");
    await grant(context, wanted, password);
    // Last, so that the secret implies that the rest is done; a repeated command completes an interrupted one.
    const url = `postgres://${role}:${password}@${postgres}.internal:${PORT}/${database}`;
    await client.call("POST /v1/apps/:app_name/secrets", { params, body: { values: { [variable]: url } } });
    const text = `${app} has the database ${database} of ${postgres}: secret ${variable}\nMachines that run get it when they next start: hangar deploy`;
    return { data: { postgres, app_name: app, role, database, variable }, text };
  },
};

function attachedOf(input: Input): Attached {
  const app = neededApp(input);
  const role = roleOf(app);
  const database = textOption(input, "database") ?? role;
  const variable = textOption(input, "variable") ?? VARIABLE;
  if (
    !/^[a-z_][a-z0-9_]*$/.test(database) ||
    database.length > MOST_NAME_CHARS ||
    /^(postgres|template[01])$/.test(database)
  )
    throw new UsageError(
      `--database is lower-case letters, digits and _, at most ${MOST_NAME_CHARS}, and none of PostgreSQL's own; not ${database}`,
    );
  if (!/^[A-Za-z_]\w*$/.test(variable)) throw new UsageError(`--variable is letters, digits and _, not ${variable}`);
  return { postgres: firstArgument(input), app, role, database, variable };
}

/** Private DNS names resolve only within one organization and network. */
async function refuseApart({ client }: Context, postgres: string, app: string): Promise<void> {
  const [one, other] = await Promise.all(
    [postgres, app].map((app_name) => client.call("GET /v1/apps/:app_name", { params: { app_name } })),
  );
  if (one?.network === other?.network && one?.organization.slug === other?.organization.slug) return;
  throw new ClientError(409, {
    error: `${app} cannot reach ${postgres}: they are in different organizations or private networks`,
    status: "conflict",
    hint: "apps create and postgres create take --network and --org",
  });
}

/** Keeps an existing database and role; the role gets a new password. */
async function grant(context: Context, { postgres, app, role, database, variable }: Attached, password: string) {
  const [name, owner] = [identifier(database), identifier(role)];
  const there = await sql(
    context,
    postgres,
    `SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = ${literal(database)};`,
  );
  if (there !== "" && there !== role)
    throw new UsageError(`the database ${database} of ${postgres} belongs to ${there}: --database names another`);
  const known = await sql(context, postgres, `SELECT 1 FROM pg_roles WHERE rolname = ${literal(role)};`);
  await sql(
    context,
    postgres,
    [
      `${known === "" ? "CREATE" : "ALTER"} ROLE ${owner} LOGIN NOSUPERUSER NOCREATEROLE PASSWORD ${literal(password)};`,
      ...(there === "" ? [`CREATE DATABASE ${name} OWNER ${owner};`] : []),
      // Denies the roles of other apps.
      `REVOKE ALL ON DATABASE ${name} FROM PUBLIC;`,
      `COMMENT ON DATABASE ${name} IS ${literal(JSON.stringify({ app, variable }))};`,
    ].join("\n"),
  );
}

export interface Database {
  database: string;
  owner: string;
  app?: string;
  variable?: string;
  bytes: number;
}

/** Databases of apps, with the metadata that `attach` stored. */
export async function databasesOf(context: Context, postgres: string): Promise<Database[]> {
  const rows = await sql(
    context,
    postgres,
    `SELECT json_build_object('database', datname, 'owner', pg_get_userbyid(datdba), 'bytes', pg_database_size(oid),
     'comment', shobj_description(oid, 'pg_database')) FROM pg_database WHERE NOT datistemplate ORDER BY datname;`,
  );
  return rows.split("\n").map((row) => {
    const { comment, ...database } = JSON.parse(row) as Database & { comment: string | null };
    return { ...database, ...noted(comment) };
  });
}

function noted(comment: string | null): Pick<Database, "app" | "variable"> {
  try {
    const { app, variable } = JSON.parse(comment ?? "") as Pick<Database, "app" | "variable">;
    return { ...(app ? { app } : {}), ...(variable ? { variable } : {}) };
  } catch {
    return {};
  }
}

export const postgresDetach: Verb = {
  words: "postgres detach",
  summary: "Detach an app's database: its secret and its login are deleted, its data is kept",
  arguments: [POSTGRES],
  options: [APP, ["--drop", "delete its databases too; this cannot be undone"]],
  examples: ["hangar postgres detach ledger --app web"],
  async run(context, input) {
    const [postgres, app] = [firstArgument(input), neededApp(input)];
    const own = (await databasesOf(context, postgres)).filter((one) => one.app === app);
    if (own.length === 0)
      throw new UsageError(`${app} has no database of ${postgres}: \`hangar postgres show ${postgres}\``);
    const drop = input.options["drop"] === true;
    const role = roleOf(app);
    await sql(
      context,
      postgres,
      [
        `ALTER ROLE ${identifier(role)} NOLOGIN PASSWORD NULL;`,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${literal(role)};`,
        ...(drop ? own.map(({ database }) => `DROP DATABASE ${identifier(database)} WITH (FORCE);`) : []),
        ...(drop ? [`DROP ROLE ${identifier(role)};`] : []),
      ].join("\n"),
    );
    const values = Object.fromEntries(own.map(({ variable = VARIABLE }): [string, null] => [variable, null]));
    await context.client.call("POST /v1/apps/:app_name/secrets", { params: { app_name: app }, body: { values } });
    const names = own.map(({ database }) => database).join(", ");
    const text = `${app} has no database of ${postgres} any more; ${names} ${drop ? "was deleted" : "is kept"}`;
    return { data: { postgres, app_name: app, databases: own, dropped: drop }, text };
  },
};
