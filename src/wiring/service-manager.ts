/**
 * Notifies systemd (`Type=notify`): ready, stopping and, while the event loop runs and the store responds, the
 * watchdog. Without a notification for `WatchdogSec` systemd kills and restarts the process. Without systemd this does
 * nothing.
 */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { sdNotify } from "#drivers/linux/sd-notify.ts";

export interface ServiceManager {
  /**
   * From now on `alive` is probed: it settles while the store responds, even with an error; a hanging store never does.
   */
  /** Started, but not ready, for this reason. */
  waiting(reason: string): void;
  ready(status: string, alive: () => Promise<unknown>, problem?: () => Promise<string | undefined>): void;
  stopping(): void;
}

interface Parts {
  env: NodeJS.ProcessEnv;
  clock: Clock;
  complain: (text: string) => void;
}

/** Watchdog notifications per watchdog interval. */
const BEATS = 3;

export function openServiceManager({ env, clock, complain }: Parts): ServiceManager {
  const { NOTIFY_SOCKET: address, WATCHDOG_USEC: watchdog_usec } = env;
  // Removed from the environment, because programs we start, such as runc, would use them.
  for (const name of ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]) delete env[name];
  if (!address) return { waiting() {}, ready() {}, stopping() {} };
  const stopped = new AbortController();
  const notify = (message: string): void => {
    try {
      sdNotify(address, message);
    } catch (thrown) {
      complain(`systemd could not be notified of ${message.split("\n")[0]}: ${messageOf(thrown)}`);
    }
  };
  const every_ms = Number(watchdog_usec) / 1000 / BEATS;
  /** Ends the waiting status. */
  let waited = new AbortController();
  const beat = async (
    signal: AbortSignal,
    alive: () => Promise<unknown>,
    notifyAlive: () => Promise<void>,
  ): Promise<void> => {
    while (!signal.aborted && every_ms > 0) {
      // A store that refuses (disk full, PostgreSQL away) is not fixed by a restart.
      await alive().catch(() => {});
      notify("WATCHDOG=1");
      await notifyAlive();
      await clock.sleep(every_ms, signal).catch(() => {});
    }
  };
  return {
    waiting(reason) {
      waited.abort();
      waited = new AbortController();
      // systemd kills a service that is not ready in time, and gives up after repeated failures.
      notify(`READY=1\nSTATUS=Not ready: ${reason}`);
      void beat(
        AbortSignal.any([waited.signal, stopped.signal]),
        async () => {},
        async () => {},
      );
    },
    ready(status, alive, problem = async () => undefined) {
      waited.abort();
      notify(`READY=1\nSTATUS=${status}`);
      let said = status;
      const notifyAlive = async (): Promise<void> => {
        const reason = await problem();
        const next = reason === undefined ? status : `Not ready: ${reason}`;
        if (next !== said) notify(`STATUS=${next}`);
        said = next;
      };
      void beat(stopped.signal, alive, notifyAlive);
    },
    stopping() {
      // Until the exit there may be requests in flight; systemd waits TimeoutStopSec.
      notify("STOPPING=1\nSTATUS=Requests in flight may finish");
      stopped.abort();
    },
  };
}
