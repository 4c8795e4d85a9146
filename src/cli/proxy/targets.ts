import type { WebSocket } from "ws";
import { type Client, ClientError } from "#client/client.ts";

const ROUTE = "GET /v1/apps/:app_name/machines/:machine_id/tunnel";

export interface TunnelTarget {
  app_name: string;
  /** Only this machine; otherwise one that runs. */
  machine_id?: string | undefined;
  port: number;
}

type Params = { app_name: string; machine_id: string };

/** Chooses the machine for connections: the named one, or a running one of the app for as long as it runs. */
export class TunnelTargets {
  readonly #client: Client;
  readonly #options: TunnelTarget;
  #chosen: string | undefined;

  constructor(client: Client, options: TunnelTarget) {
    this.#client = client;
    this.#options = options;
    this.#chosen = options.machine_id;
  }

  get machine_id(): string {
    return this.#chosen ?? "";
  }

  /** Fails with the platform's error when no connection is possible now. */
  async check(): Promise<void> {
    await this.#explain(await this.#params());
  }

  /** Opens a connection to the machine; to another one of the app when that one no longer runs. */
  async connect(open: (params: Params) => Promise<WebSocket | undefined>): Promise<WebSocket> {
    const first = await open(await this.#params());
    if (first) return first;
    if (this.#options.machine_id === undefined) {
      this.#chosen = undefined;
      const second = await open(await this.#params());
      if (second) return second;
    }
    await this.#explain(await this.#params());
    throw blocked(this.#client);
  }

  async #params(): Promise<Params> {
    const { app_name } = this.#options;
    this.#chosen ??= await this.#pick();
    return { app_name, machine_id: this.#chosen };
  }

  /** A running machine, preferably one whose checks pass. */
  async #pick(): Promise<string> {
    const { app_name } = this.#options;
    const started = [];
    const states = new Set<string>();
    for await (const machine of this.#client.list("GET /v1/apps/:app_name/machines", { params: { app_name } })) {
      states.add(machine.state);
      if (machine.state === "started") started.push(machine);
    }
    const healthy = started.find(({ checks }) =>
      Object.values(checks ?? {}).every(({ status }) => status === "passing"),
    );
    const found = healthy ?? started[0];
    if (found) return found.id;
    throw new ClientError(412, {
      error: `no machine of ${app_name} is started${states.size === 0 ? ": it has none" : ` (${[...states].join(", ")})`}`,
      status: "wrong_state",
      hint: states.size === 0 ? "hangar deploy, or hangar run" : `hangar machines start <machine> --app ${app_name}`,
    });
  }

  /** Repeats a refused handshake as a plain request: WebSocket clients do not expose the error response. */
  async #explain(params: Params): Promise<void> {
    try {
      await this.#client.call(ROUTE, { params, query: { port: this.#options.port } });
    } catch (thrown) {
      if (thrown instanceof ClientError && thrown.http !== 426) throw thrown;
    }
  }
}

const blocked = ({ base_url }: Client): ClientError =>
  new ClientError(0, {
    error: `a tunnel cannot be opened at ${base_url}: something in between does not let WebSocket pass`,
    hint: "a proxy in front of the platform must pass the Upgrade and Connection headers on",
  });
