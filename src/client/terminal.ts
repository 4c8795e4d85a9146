import { type Client, ClientError } from "./client.ts";

export interface TerminalSize {
  rows: number;
  cols: number;
}

export interface TerminalOptions extends TerminalSize {
  app_name: string;
  machine_id: string;
  /** A shell when left out. */
  command?: readonly string[];
  term?: string;
}

/** How it ended: with the program's exit code, or, when the connection was lost or closed, without one. */
export interface TerminalEnd {
  exit_code?: number;
  exit_signal?: number;
  /** The reason, when there is no code. */
  reason: string;
}

export interface RemoteTerminal {
  /** Keys, as bytes or text. */
  send(keys: Uint8Array<ArrayBuffer> | string): void;
  resize(size: TerminalSize): void;
  /** To what has the terminal now. */
  signal(name: string): void;
  close(): void;
  ended: Promise<TerminalEnd>;
}

const ROUTE = "GET /v1/apps/:app_name/machines/:machine_id/terminal";

/** Opens a terminal into a machine; `draw` gets what appears on it. Rejects with the platform's error. */
export async function openTerminal(
  client: Client,
  { app_name, machine_id, command, ...rest }: TerminalOptions,
  draw: (screen: Uint8Array<ArrayBuffer>) => void,
): Promise<RemoteTerminal> {
  const input = {
    params: { app_name, machine_id },
    query: { ...rest, ...(command ? { command: [...command] } : {}) },
  };
  const line = client.websocket(ROUTE, input);
  const ended = Promise.withResolvers<TerminalEnd>();
  let end: Omit<TerminalEnd, "reason"> = {};
  line.addEventListener("message", (event) => {
    const data = event.data as ArrayBuffer | string;
    if (typeof data !== "string") return draw(new Uint8Array(data));
    ({ ended: end = {} } = JSON.parse(data) as { ended?: typeof end });
  });
  line.addEventListener("close", ({ code, reason }) => {
    ended.resolve({ ...end, reason: reason || (code === 1000 ? "closed" : `the connection was lost (${code})`) });
  });
  const opened = await new Promise<boolean>((resolve) => {
    line.addEventListener("open", () => resolve(true), { once: true });
    line.addEventListener("error", () => resolve(false), { once: true });
  });
  if (!opened) await explain(client, input);
  const encoder = new TextEncoder();
  const say = (what: object): void => line.send(JSON.stringify(what));
  return {
    send: (keys) => line.send(typeof keys === "string" ? encoder.encode(keys) : keys),
    resize: (resize) => say({ resize }),
    signal: (signal) => say({ signal }),
    close: () => line.close(1000),
    ended: ended.promise,
  };
}

/** Repeats a refused handshake as a plain request: WebSocket clients do not expose the error response. */
async function explain(client: Client, input: Parameters<typeof client.call<typeof ROUTE>>[1]): Promise<never> {
  try {
    await client.call(ROUTE, input);
  } catch (thrown) {
    if (thrown instanceof ClientError && thrown.http !== 426) throw thrown;
  }
  throw new ClientError(0, {
    error: `a terminal cannot be opened at ${client.base_url}: something in between does not let WebSocket pass`,
    hint: "a proxy in front of the platform must pass the Upgrade and Connection headers on",
  });
}
