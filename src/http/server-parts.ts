import type { FastifyReply } from "fastify";
import type { Clock } from "#core/clock.ts";
import type { ErrorBody } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Guard, MachineAuthenticator } from "./access.ts";
import type { Dashboard } from "./dashboard.ts";
import type { Idempotency } from "./idempotency.ts";
import type { RateLimiter } from "./rate.ts";
import type { Row } from "./route.ts";

export type Around = (row: Row, reply: FastifyReply, work: () => Promise<FastifyReply>) => Promise<FastifyReply>;
/** Conventions of a listener's clients, where they differ from the API's. */
export interface Customs {
  /** Headers of every response. */
  headers(request_id: string): Record<string, string>;
  /** The body of an error. `url` is the requested one. */
  error(body: ErrorBody, http: number, url: string): { http: number; body: object };
}

export interface ServerParts {
  rows: readonly Row[];
  guard: Guard;
  /** The guard of a row, if it differs. */
  guardOf?: (row: Row) => Guard | undefined;
  /** Without it, machine routes refuse everyone. */
  machine_authenticator?: MachineAuthenticator;
  clock: Clock;
  log: Log;
  idempotency: Idempotency;
  rate?: RateLimiter;
  /** Without it there is no dashboard. */
  dashboard?: Dashboard;
  customs?: Customs;
  /** Wraps every handler, to inject faults for clients' tests. */
  around?: Around | undefined;
}
