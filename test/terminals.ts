/** A terminal into a machine, for tests: what the screen has shown can be waited for. */
import type { Client } from "#client/client.ts";
import { openTerminal, type RemoteTerminal } from "#client/terminal.ts";

export interface SeenTerminal extends RemoteTerminal {
  /** Resolves when the screen has shown it; what was shown until then is forgotten. */
  shows(wanted: RegExp): Promise<void>;
  /** What the screen has shown since. */
  seen(): string;
}

export async function seenTerminal(
  client: Client,
  machine_id: string,
  command?: readonly string[],
): Promise<SeenTerminal> {
  let screen = "";
  let look = (): void => {};
  const where = { app_name: "web", machine_id, rows: 24, cols: 80, ...(command ? { command } : {}) };
  const terminal = await openTerminal(client, where, (bytes) => {
    screen += Buffer.from(bytes).toString();
    look();
  });
  const shows = async (wanted: RegExp): Promise<void> => {
    while (!wanted.test(screen)) {
      await new Promise<void>((resolve) => {
        look = resolve;
      });
    }
    screen = "";
  };
  return { ...terminal, shows, seen: () => screen };
}
