import type { FastifyReply } from "fastify";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Guard, MachineAuthenticator } from "./access.ts";
import type { Dashboard } from "./dashboard.ts";
import type { Idempotency } from "./idempotency.ts";
import type { RateLimiter } from "./rate.ts";
import type { Row } from "./route.ts";

export type Around = (row: Row, reply: FastifyReply, work: () => Promise<FastifyReply>) => Promise<FastifyReply>;
export interface ServerParts {
  rows: readonly Row[];
  guard: Guard;
  /** The guard of a row, where that is not the same for all. */
  guardOf?: (row: Row) => Guard;
  /** Without it, routes for machines are closed to everyone. */
  machine_authenticator?: MachineAuthenticator;
  clock: Clock;
  log: Log;
  idempotency: Idempotency;
  rate?: RateLimiter;
  /** Without it there are no pages. */
  dashboard?: Dashboard;
  /** Stands around the work of every row, for those who want to see what callers do when things go wrong. */
  around?: Around | undefined;
}
