/** Finds databases that `hangar postgres create` made, by a key in their machines' metadata. */
import { setTimeout } from "node:timers/promises";
import type { MachineConfig } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { systemClock } from "#core/clock.ts";
import { DeployLease } from "../deploy/lease.ts";
import { machinesOf } from "../deploy/machines.ts";
import type { Place } from "../deploy/place.ts";
import type { Running } from "../deploy/plan.ts";
import { UndoLog } from "../deploy/undo.ts";
import { LiveStatus } from "../live-status.ts";
import type { Context } from "../verb.ts";

export const PORT = 5432;
/** The platform also reads it, to collect the server's metrics. */
export const PORT_KEY = "hangar_postgres_port";
export const POSTGRES: readonly [string, string] = ["<postgres>", "an app created with `hangar postgres create`"];

const WAIT_MS = 180_000;

export const isPostgres = (config: Partial<MachineConfig> | undefined): boolean =>
  config?.metadata?.[PORT_KEY] !== undefined;

/** The machine of the database. */
export async function findPostgres(context: Context, app_name: string): Promise<Running> {
  const machines = (await machinesOf({ context, app_name })).filter(({ config }) => isPostgres(config));
  const found = machines.find(({ state }) => state === "started") ?? machines[0];
  if (found) return found;
  throw new ClientError(404, {
    error: `${app_name} has no database that \`hangar postgres create\` made`,
    status: "not_found",
    hint: "hangar postgres list",
  });
}

/** The app, region and timeout for its machine. */
export const placeOf = (context: Context, app_name: string, region?: string): Place => ({
  context,
  app_name,
  region,
  wait_ms: WAIT_MS,
  stable_ms: 0,
  status: new LiveStatus(),
  undo: new UndoLog(),
  lease: new DeployLease(context, app_name),
});

/** Runs SQL with psql in the machine, as the superuser; returns its output without headings. */
export async function sql(context: Context, app_name: string, text: string, database?: string): Promise<string> {
  const { id, state } = await findPostgres(context, app_name);
  if (state !== "started")
    throw new ClientError(412, {
      error: `the database of ${app_name} is ${state}`,
      status: "wrong_state",
      hint: `hangar machines start ${id} --app ${app_name}`,
    });
  const until = systemClock.monotonic() + START_MS;
  for (;;) {
    const { exit_code, stdout, stderr } = await context.client.call(
      "POST /v1/apps/:app_name/machines/:machine_id/exec",
      {
        params: { app_name, machine_id: id },
        body: { command: ["/bin/sh", "-c", PSQL, "psql", database ?? "postgres"], stdin: text, timeout: 60 },
      },
    );
    if (exit_code === 0) return stdout.trim();
    // After a crash the server recovers first; none of the statements ran then.
    if (!NOT_YET.test(stderr) || systemClock.monotonic() > until)
      throw new ClientError(0, { error: `PostgreSQL refused: ${stderr.trim() || `psql ended with ${exit_code}`}` });
    await setTimeout(AGAIN_MS);
  }
}

const START_MS = 60_000;
const AGAIN_MS = 500;
const NOT_YET = /the database system is starting up|Connection refused/;

/** Connects over TCP with the password of the machine, independent of the system users in the image. */
const PSQL = `PGPASSWORD="$POSTGRES_PASSWORD" exec psql -h 127.0.0.1 -p ${PORT} -U "\${POSTGRES_USER:-postgres}" -d "$1" -v ON_ERROR_STOP=1 -qAtX`;

/** A quoted SQL identifier. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
