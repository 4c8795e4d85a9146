/**
 * The work of each transitional state. A phase calls the driver and returns how to record the outcome. The state alone
 * determines the next phase, so after a crash an operation continues where it was: its progress is stored nowhere
 * else.
 */

import { configDuration } from "#core/durations.ts";
import type { EgressPolicy } from "#core/egress-policy.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import {
  type Exit,
  type Launch,
  type Ref,
  type RuntimeDriver,
  type StopOptions,
  SuspendRefused,
} from "../runtime/driver.ts";
import { identityEnv } from "../runtime/identity-env.ts";
import type { EventRequest, Machine, Operation } from "../types.ts";
import { exitEvent } from "./restart.ts";
import type { MachineState } from "./states.ts";
import type { MachineTransaction } from "./transaction.ts";

export interface PhaseParts {
  driver: RuntimeDriver;
  /** All secrets of the app, for a booting machine. */
  secrets(app_id: string): Promise<Record<string, string>>;
  /** The app's egress policy. */
  egress(app_id: string): Promise<EgressPolicy>;
}

export interface Phase {
  machine: Machine;
  operation: Operation;
  signal: AbortSignal;
  /** Restarts the state's timeout. */
  extend: () => void;
  now: number;
}

/** Records the outcome; returns whether the operation is finished. */
export type Outcome = (transaction: MachineTransaction) => "finished" | "goes on";

export type PhaseWork = (parts: PhaseParts, phase: Phase) => Promise<Outcome>;

export const PHASES: Partial<Record<MachineState, PhaseWork>> = {
  starting: boot,
  stopping: halt,
  suspending: freeze,
  restarting: cycle,
  replacing: replace,
  destroying: remove,
};

async function boot(parts: PhaseParts, { machine, operation, signal, extend, now }: Phase): Promise<Outcome> {
  const { driver } = parts;
  let lost: string | undefined;
  // Suspended: a stopped machine has no boot.
  if (machine.boot !== null && machine.handle) {
    const resumed = await driver.resume(await launchOf(parts, machine, machine.boot, true), machine.handle, signal);
    if (!("lost" in resumed)) return booted(machine, machine.boot, resumed, now, { resumed: true });
    lost = `booted cold: ${resumed.lost}`;
  }
  const keep = lost !== undefined || keepsRootfs(machine);
  const launch = await launchOf(parts, machine, operation.id, keep);
  const started = await driver.start(launch, signal, extend);
  return booted(machine, operation.id, started, now, lost === undefined ? undefined : { resumed: false, reason: lost });
}

const booted =
  (
    { config, boot: before, boot_stop_config }: Machine,
    boot: string,
    { handle, image_ref, private_ipv4 }: Awaited<ReturnType<RuntimeDriver["start"]>>,
    now: number,
    request?: EventRequest,
  ): Outcome =>
  (transaction) => {
    // A resumed machine keeps the stop config of the version that booted.
    const stop_config = before === boot && boot_stop_config ? boot_stop_config : (config.stop_config ?? {});
    transaction.set({
      boot,
      handle,
      boot_stop_config: stop_config,
      private_ipv4: private_ipv4 ?? null,
      snapshot: false,
      started_at: now,
      ...(image_ref ? { image_ref } : {}),
    });
    transaction.transition("booted", "host", request);
    return "finished";
  };

async function halt({ driver }: PhaseParts, { machine, operation, signal, now }: Phase): Promise<Outcome> {
  const exit = await stopBoot(driver, machine, stopHow(machine, operation), signal);
  return (transaction) => {
    suspendOrStop(transaction, exit, now);
    if (!exit) transaction.transition("halted", "host");
    return "finished";
  };
}

async function freeze({ driver }: PhaseParts, { machine, operation, signal, now }: Phase): Promise<Outcome> {
  const ref = refOf(machine);
  if (!ref) return rest;
  const capabilities = driver.capabilities();
  let reason = capabilities.suspend !== false ? undefined : (capabilities.suspend_reason ?? "this host cannot suspend");
  if (reason === undefined) {
    try {
      const { handle, kind, reason: why } = await driver.suspend(ref, signal);
      return (transaction) => {
        transaction.set({ handle, snapshot: kind === "snapshot", checks: {} });
        transaction.transition("frozen", "host", {
          suspend: kind,
          ...(why ? { reason: `frozen in memory: ${why}` } : {}),
        });
        return "finished";
      };
    } catch (thrown) {
      if (!(thrown instanceof SuspendRefused)) throw thrown;
      reason = thrown.message;
    }
  }
  // A machine that cannot be suspended is stopped; the event says why.
  const exit = await stopBoot(driver, machine, stopHow(machine, operation), signal);
  return (transaction) => {
    suspendOrStop(transaction, exit, now, { reason: `stopped instead of suspended: ${reason}` });
    if (!exit) transaction.transition("halted", "host", { reason });
    return "finished";
  };
}

const rest: Outcome = (transaction) => {
  transaction.transition("halted", "host");
  return "finished";
};

/** First half of a restart: stops what is running. The machine then starts like any other. */
async function cycle({ driver }: PhaseParts, { machine, operation, signal, now }: Phase): Promise<Outcome> {
  const exit = await stopBoot(driver, machine, stopHow(machine, operation), signal);
  return (transaction) => {
    suspendOrStop(transaction, exit, now);
    const { source, move_to } = operation.payload;
    if (move_to && move_to.host_id !== transaction.machine.host_id) {
      const from = transaction.machine.host_id;
      transaction.move(move_to);
      transaction.transition("start", source, { reason: `moved from host ${from} to ${move_to.host_id}` });
    } else transaction.transition("start", source);
    return "goes on";
  };
}

/** First half of an update: removes the old version with its memory and root file system. */
async function replace({ driver }: PhaseParts, { machine, operation, signal, now }: Phase): Promise<Outcome> {
  const exit = await stopBoot(driver, machine, stopHow(machine, operation), signal);
  const { launch, was_created, source } = operation.payload;
  return (transaction) => {
    suspendOrStop(transaction, exit, now);
    if (launch) {
      transaction.transition("start", source);
      return "goes on";
    }
    if (!exit) transaction.transition(was_created ? "readied" : "rested", "host");
    return "finished";
  };
}

async function remove({ driver }: PhaseParts, { machine, operation, signal }: Phase): Promise<Outcome> {
  const exit = await stopBoot(driver, machine, stopHow(machine, operation), signal);
  await driver.destroy(machine.id, signal);
  return (transaction) => {
    if (exit) transaction.recordEvent("exit", "destroying", "host", { exit_event: exitEvent(exit, REQUESTED) });
    clear(transaction);
    transaction.set({ next_run_at: null, lease: null });
    transaction.transition("removed", "host");
    return "finished";
  };
}

const REQUESTED = { requested_stop: true, restarting: false };

async function stopBoot(
  driver: RuntimeDriver,
  machine: Machine,
  how: StopOptions,
  signal: AbortSignal,
): Promise<Exit | undefined> {
  const ref = refOf(machine);
  return ref ? await driver.stop(ref, how, signal) : undefined;
}

/** The boot has ended. Records its exit, if there was one. */
function suspendOrStop(
  transaction: MachineTransaction,
  exit: Exit | undefined,
  now: number,
  request: EventRequest = {},
): void {
  const restarting = transaction.machine.state === "restarting" || transaction.machine.state === "replacing";
  clear(transaction);
  if (!exit) return;
  const exited = { ...exit, exited_at: exit.exited_at || now };
  transaction.transition("exited", "host", {
    ...request,
    exit_event: exitEvent(exited, { requested_stop: true, restarting }),
  });
}

export function clear(transaction: MachineTransaction): void {
  transaction.set({
    boot: null,
    handle: null,
    boot_stop_config: null,
    private_ipv4: null,
    snapshot: false,
    started_at: null,
    checks: {},
  });
}

export const refOf = ({ id, boot, handle }: Machine): Ref | undefined =>
  boot === null ? undefined : { id, boot, handle };

/** Stop options of the request, else of the running version: `config` may already be newer. */
export function stopHow({ config, boot_stop_config }: Machine, { payload }: Operation): StopOptions {
  const { stop_timeout_ms, stop_timeout_max_ms } = MACHINE_LIMITS;
  const stop_config = boot_stop_config ?? config.stop_config;
  const timeout = payload.timeout_ms ?? configDuration(stop_config?.timeout) ?? stop_timeout_ms;
  return {
    signal: payload.signal ?? stop_config?.signal ?? "SIGINT",
    timeout_ms: Math.min(timeout, stop_timeout_max_ms),
  };
}

/** `restart` keeps the root file system within one version, `always` also across updates. */
function keepsRootfs({ config }: Machine): Launch["keep_rootfs"] {
  const persist = config.guest?.persist_rootfs ?? config.rootfs?.persist;
  if (persist === "always" || persist === 2) return true;
  // The machine may have been updated while stopped: only the driver knows which version wrote the disk.
  return persist === "restart" || persist === 3 ? "version" : false;
}

async function launchOf(
  parts: PhaseParts,
  machine: Machine,
  boot: string,
  keep_rootfs: Launch["keep_rootfs"],
): Promise<Launch> {
  const { id, name, app_name, org_id, region, instance_id, private_ip, image_ref, config } = machine;
  const [secrets, egress] = await Promise.all([parts.secrets(machine.app_id), parts.egress(machine.app_id)]);
  const env = { ...identityEnv({ ...secrets, ...config.env }, machine), ...config.env };
  const given = { ...config, env };
  return {
    id,
    boot,
    name,
    app_name,
    org_id,
    region,
    instance_id,
    private_ip,
    image_ref,
    config: given,
    secrets,
    egress,
    keep_rootfs,
  };
}
