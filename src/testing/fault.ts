import type { Api } from "#client/api.ts";
import type { ErrorCode } from "#core/error-catalogue.ts";

interface FaultBase {
  /** Waits so long before anything else, on the emulator's clock. */
  delay_ms?: number;
  /** How often it happens; once when left out, `Infinity` until it is removed. */
  times?: number;
}

/** A request that goes wrong. */
export interface RequestFault extends FaultBase {
  /** The route as the API writes it, such as `POST /v1/apps/:app_name/machines`; `*` is every one. */
  route: keyof Api | "*";
  /** Only where the path has these, such as `{ app_name: "web" }`. */
  params?: Readonly<Record<string, string>>;
  /** Answers with this error instead of doing anything; docs/errors.md lists them. */
  fail?: ErrorCode;
  /** Ends the connection without an answer: `before` anything is done, or `after` all of it was. */
  hang_up?: "before" | "after";
}

/** Something the host does for a machine and that goes wrong. */
export interface HostFault extends FaultBase {
  host: "start" | "stop" | "suspend" | "resume" | "destroy" | "exec" | "ps" | "signal" | "probe";
  /** Only this machine, by its id. */
  machine?: string;
  /** What it fails with, in words; they show in the machine's events. */
  fail?: string;
}

export type Fault = RequestFault | HostFault;

/** A fault that is waiting to happen. */
export interface SetFault {
  readonly fault: Fault;
  /** How often it has happened. */
  readonly happened: number;
  remove(): void;
}

/** What shall go wrong. The oldest fault that fits happens first, and is gone when it has happened often enough. */
export interface Faults {
  add(fault: Fault): SetFault;
  /** Nothing goes wrong any more. */
  clear(): void;
  /** Those that are still to happen. */
  list(): { fault: Fault; happened: number }[];
}
