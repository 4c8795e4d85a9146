import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { gatewayAddress } from "#machines/names.ts";
import type { Directory, Entry } from "./directory.ts";
import { DnsServer } from "./dns/server.ts";
import type { EgressEnforcer } from "./egress-enforcer.ts";

/** A service on the gateway address of a private network. */
export interface NetworkListener {
  /** Name for the log. */
  readonly what: string;
  /** `network` is the address of a machine in it. */
  listen(address: string, network: string): Promise<unknown>;
}

interface KeeperParts {
  directory: Directory;
  /** The hosts of this process: on others' networks nothing can listen here. */
  host_ids: readonly string[];
  /** Loads all machines of an app, including stopped ones. */
  loadApp(app_name: string): Promise<void>;
  /** Upstream DNS servers; the host's own when absent. */
  upstreams?: readonly { host: string; port: number }[] | undefined;
  egress?: Pick<EgressEnforcer, "mayAsk" | "answered"> | undefined;
  clock: Clock;
  log: Log;
  /** Services beside DNS. */
  listeners?: readonly NetworkListener[];
}

const RETRY_MS = 500;

/**
 * Listens with DNS and other services on the gateway address of each private network, which exists once the network's
 * first machine has booted.
 */
export class NetworkListeners {
  readonly #parts: KeeperParts;
  readonly #server: DnsServer;
  /** Gateways that are being tried or listened on. */
  readonly #wanted = new Set<string>();
  /** Gateways that are needed for something that is no machine, and how often. */
  readonly #held = new Map<string, number>();
  readonly #closing = new AbortController();

  constructor(parts: KeeperParts) {
    this.#parts = parts;
    this.#server = new DnsServer(parts);
    parts.directory.onChange((app_id) => this.#update(parts.directory.machines(app_id)));
  }

  start(): void {
    this.#update(this.#parts.directory.all());
  }

  close(): void {
    this.#closing.abort();
    this.#server.close();
  }

  /** DNS answers in the network of this address while `work` runs, also without a machine in it. */
  async holding<T>(private_ip: string, work: () => Promise<T>): Promise<T> {
    const address = gatewayAddress(private_ip);
    this.#held.set(address, (this.#held.get(address) ?? 0) + 1);
    if (!this.#wanted.has(address)) {
      this.#wanted.add(address);
      void this.#open(address, private_ip);
    }
    try {
      return await work();
    } finally {
      this.#held.set(address, (this.#held.get(address) ?? 1) - 1);
    }
  }

  #update(machines: Iterable<Entry>): void {
    for (const { state, private_ip, host_id } of machines) {
      if ((state !== "starting" && state !== "started") || !this.#here(host_id)) continue;
      const address = gatewayAddress(private_ip);
      if (this.#wanted.has(address)) continue;
      this.#wanted.add(address);
      void this.#open(address, private_ip);
    }
  }

  #here(host_id: string): boolean {
    return this.#parts.host_ids.includes(host_id);
  }

  async #open(address: string, private_ip: string): Promise<void> {
    const { listeners = [] } = this.#parts;
    const tried = [this.#server, ...listeners].map((service) => this.#listen(service, address, private_ip));
    // No longer needed: the next machine of this network tries again.
    if (!(await Promise.all(tried)).every(Boolean)) this.#wanted.delete(address);
  }

  /** The address appears when the network is created; until then listening fails. Returns whether it listens now. */
  async #listen(service: NetworkListener, address: string, private_ip: string): Promise<boolean> {
    const { clock, log, directory } = this.#parts;
    const { signal } = this.#closing;
    const needed = (): boolean =>
      (this.#held.get(address) ?? 0) > 0 ||
      [...directory.all()].some(
        (one) => this.#here(one.host_id) && gatewayAddress(one.private_ip) === address && one.state !== "stopped",
      );
    let reported = "";
    while (!signal.aborted && needed()) {
      try {
        await service.listen(address, private_ip);
        return true;
      } catch (thrown) {
        const { code = "" } = thrown as NodeJS.ErrnoException;
        // Once: it is tried again twice a second.
        if (code !== "EADDRNOTAVAIL" && code !== reported) log.warn({ address, code }, `${service.what} cannot listen`);
        reported = code;
        await clock.sleep(RETRY_MS, signal).catch(() => {});
      }
    }
    return false;
  }
}
