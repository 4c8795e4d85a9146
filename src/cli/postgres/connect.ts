/** Runs psql on this computer, tunnelled through the platform's API: the database has no public port. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { systemClock } from "#core/clock.ts";
import { interrupted } from "../proxy/port.ts";
import { openLocalPort } from "../proxy/tunnel.ts";
import { print, printJsonLine } from "../terminal-text.ts";
import { type Context, firstArgument, type Input, numberOption, textOption, type Verb } from "../verb.ts";
import { roleOf } from "./attach.ts";
import { findPostgres, identifier, literal, PORT, POSTGRES, sql } from "./find.ts";

/** Prefix of temporary logins; one that was left behind expires. */
const PREFIX = "hangar_connect_";
const LOGIN_HOURS = 12;

export const postgresConnect: Verb = {
  words: "postgres connect",
  summary: "Open psql on a database through the API; without psql, print the URL and keep the connection open",
  arguments: [POSTGRES, ["[arguments...]", "for psql, after --"]],
  options: [
    ["--as <app>", "connect with the role and to the database of this attached app (default: superuser)"],
    ["--database <name>", "the database (default: the app's, else postgres)"],
    ["--port <port>", "local port (default: a free one)"],
    ["--url-only", "print the URL and keep the connection open, also where psql is installed"],
  ],
  examples: [`hangar postgres connect ledger -- -c "SELECT 1"`],
  async run(context, input) {
    const app_name = firstArgument(input);
    const { id: machine_id } = await findPostgres(context, app_name);
    const role = textOption(input, "as");
    const login = await temporaryLogin(context, app_name, role === undefined ? undefined : roleOf(role));
    const listen = { host: "127.0.0.1", port: numberOption(input, "port") ?? 0 };
    try {
      const local = await openLocalPort(context, { app_name, machine_id, port: PORT, listen });
      try {
        const database = textOption(input, "database") ?? (role === undefined ? "postgres" : roleOf(role));
        return await use(context, input, { ...login, port: local.port, database });
      } finally {
        await local.close();
      }
    } finally {
      await sql(context, app_name, dropLogin(login.user));
    }
  },
};

interface Login {
  user: string;
  password: string;
}

/** Creates a login that acts as the superuser, or as an app's role, which owns what it creates. */
async function temporaryLogin(context: Context, app_name: string, role: string | undefined): Promise<Login> {
  const user = `${PREFIX}${randomBytes(6).toString("hex")}`;
  const password = randomBytes(24).toString("base64url");
  const left = await sql(
    context,
    app_name,
    `SELECT rolname FROM pg_roles WHERE rolname LIKE '${PREFIX.replaceAll("_", "\\_")}%' AND rolvaliduntil < now();`,
  );
  const acts_as = role === undefined ? "CURRENT_USER" : literal(role);
  await sql(
    context,
    app_name,
    [
      ...left.split("\n").filter(Boolean).map(dropLogin),
      `CREATE ROLE ${user} LOGIN ${role === undefined ? "SUPERUSER" : ""} PASSWORD ${literal(password)} VALID UNTIL '${expiry()}';`,
      role === undefined
        ? `SELECT format('GRANT %I TO ${user}', current_user) \\gexec`
        : `GRANT ${identifier(role)} TO ${user};`,
      role === undefined
        ? `SELECT format('ALTER ROLE ${user} SET role = %L', current_user) \\gexec`
        : `ALTER ROLE ${user} SET role = ${acts_as};`,
    ].join("\n"),
  );
  return { user, password };
}

/** The server's clock may differ a little, which does not matter at this scale. */
const expiry = (): string => new Date(systemClock.now() + LOGIN_HOURS * 3_600_000).toISOString();

const dropLogin = (user: string): string =>
  `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${user}'; DROP ROLE IF EXISTS ${identifier(user)};`;

interface Target extends Login {
  port: number;
  database: string;
}

async function use({ say }: Context, input: Input, { user, password, port, database }: Target) {
  const env = { PGHOST: "127.0.0.1", PGPORT: String(port), PGUSER: user, PGPASSWORD: password, PGDATABASE: database };
  const exitCode = input.options["urlOnly"] === true ? undefined : await psql(input.rest.slice(0), env);
  if (exitCode !== undefined) return { data: { exit: exitCode }, text: "", exit: exitCode };
  const url = `postgres://${user}:${password}@127.0.0.1:${port}/${database}`;
  if (input.options["json"] === true) printJsonLine({ url });
  else print(url);
  say(`valid while this command runs, at most ${LOGIN_HOURS} hours; Ctrl-C ends it`);
  await interrupted();
  return { data: null, text: "" };
}

/** The exit code of psql; undefined where it is not installed. */
async function psql(args: readonly string[], env: Record<string, string>): Promise<number | undefined> {
  const child = spawn("psql", args, { stdio: "inherit", env: { ...process.env, ...env } });
  // Ctrl-C cancels a query of psql, not psql.
  const ignore = (): void => {};
  process.on("SIGINT", ignore);
  try {
    const [code] = (await once(child, "exit")) as [number | null];
    return code ?? 1;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  } finally {
    process.off("SIGINT", ignore);
  }
}
