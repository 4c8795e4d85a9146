import { useEffect } from "preact/hooks";
import { useCell } from "../cell.ts";
import { type FleetMachine, fleet, followApp } from "../fleet.ts";
import { useAnswer } from "../parts/basics.ts";
import { useRounds } from "../parts/controls.ts";
import { call } from "../session.ts";

type Loaded<T> = ReturnType<typeof useAnswer<T>>;
export type AppStatus = Awaited<ReturnType<typeof readStatus>>;

export interface AppTabProps {
  app_name: string;
  readOnly: boolean;
  status: AppStatus | undefined;
}

const EVERY_MS = 5000;

const readStatus = (app_name: string, signal: AbortSignal) =>
  call("GET /v1/apps/:app_name/status", { params: { app_name }, signal });

/** The app's status: at once when a machine changed, and every few seconds, because checks are no events. */
export function useAppStatus(app_name: string): Loaded<AppStatus> {
  const own = useMachines(app_name);
  const round = useRounds(EVERY_MS);
  const states = own.map(({ id, state }) => `${id} ${state}`).join();
  return useAnswer((signal) => readStatus(app_name, signal), [app_name, states, round]);
}

export function useMachines(app_name: string): FleetMachine[] {
  const { machines } = useCell(fleet);
  useEffect(() => followApp(app_name), [app_name]);
  return [...machines.values()].filter((machine) => machine.app_name === app_name);
}

/** Machine names by the `instance` label of their series, which is the version of the machine's config. */
export function machineNames(machines: readonly FleetMachine[]): (instance: string) => string {
  const names = new Map(machines.map(({ version, name }) => [version, name]));
  return (instance) => names.get(instance) ?? `earlier version ${instance.slice(-6)}`;
}
