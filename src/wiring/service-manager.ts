/**
 * What systemd is told of a service of `Type=notify`: that the platform is ready, that it stops, and, for as long as the
 * event loop turns and the store answers, that it is alive. When that is not heard of for `WatchdogSec` systemd ends
 * the process and starts it again. Without systemd nothing of this happens.
 */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { sdNotify } from "#drivers/linux/sd-notify.ts";

export interface ServiceManager {
  /** From now on `alive` is asked: it answers, well or badly, while the store does; a store that hangs never does. */
  ready(status: string, alive: () => Promise<unknown>, problem?: () => Promise<string | undefined>): void;
  stopping(): void;
}

interface Parts {
  env: NodeJS.ProcessEnv;
  clock: Clock;
  complain: (text: string) => void;
}

/** How many times it is said within the time that systemd waits. */
const BEATS = 3;

export function openServiceManager({ env, clock, complain }: Parts): ServiceManager {
  const { NOTIFY_SOCKET: address, WATCHDOG_USEC: watchdog_usec } = env;
  // For us alone: programs that we start, runc among them, would take them for their own.
  for (const name of ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]) delete env[name];
  if (!address) return { ready() {}, stopping() {} };
  const stopped = new AbortController();
  const tell = (message: string): void => {
    try {
      sdNotify(address, message);
    } catch (thrown) {
      complain(`systemd could not be told ${message.split("\n")[0]}: ${messageOf(thrown)}`);
    }
  };
  const beat = async (every_ms: number, alive: () => Promise<unknown>, say: () => Promise<void>): Promise<void> => {
    while (!stopped.signal.aborted) {
      // A store that refuses, because the disk is full or PostgreSQL is away, is not mended by a restart.
      await alive().catch(() => {});
      tell("WATCHDOG=1");
      await say();
      await clock.sleep(every_ms, stopped.signal).catch(() => {});
    }
  };
  return {
    ready(status, alive, problem = async () => undefined) {
      tell(`READY=1\nSTATUS=${status}`);
      let said = status;
      const say = async (): Promise<void> => {
        const reason = await problem();
        const next = reason === undefined ? status : `Not ready: ${reason}`;
        if (next !== said) tell(`STATUS=${next}`);
        said = next;
      };
      const every_ms = Number(watchdog_usec) / 1000 / BEATS;
      if (every_ms > 0) void beat(every_ms, alive, say);
    },
    stopping() {
      // Until its end it may be busy with requests in flight; systemd waits TimeoutStopSec for that.
      tell("STOPPING=1\nSTATUS=Requests in flight may finish");
      stopped.abort();
    },
  };
}
