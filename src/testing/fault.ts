import type { Api } from "#client/api.ts";
import type { ErrorCode } from "#core/error-catalogue.ts";

interface FaultBase {
  /** Waits so long before anything else, on the emulator's clock. */
  delay_ms?: number;
  /** How often it happens; once when left out, `Infinity` until it is removed. */
  times?: number;
}

/** An injected fault of a request. */
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

/** An injected fault of a host operation. */
export interface HostFault extends FaultBase {
  host: "start" | "stop" | "suspend" | "resume" | "destroy" | "exec" | "ps" | "signal" | "probe";
  /** Only this machine, by its id. */
  machine?: string;
  /** The error message, which is shown in the machine's events. */
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

/** Pending faults. The oldest match is injected first, and removed after its number of times. */
export interface Faults {
  add(fault: Fault): SetFault;
  /** Removes all faults. */
  clear(): void;
  /** Those that are still to happen. */
  list(): { fault: Fault; happened: number }[];
}
