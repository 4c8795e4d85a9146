import { call } from "../session.ts";

/** Reads the machine that a page shows. */
export const readMachine = (params: { app_name: string; machine_id: string }, signal?: AbortSignal) =>
  call("GET /v1/apps/:app_name/machines/:machine_id", {
    params,
    query: { include_leases: true },
    ...(signal ? { signal } : {}),
  });

export type Machine = Awaited<ReturnType<typeof readMachine>>;

export interface TabProps {
  machine: Machine;
  app_name: string;
  /** Incremented when the machine changed, to reload. */
  turn: number;
}
