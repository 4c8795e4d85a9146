import { createHash } from "node:crypto";
import { isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { groupsText } from "./bytes.ts";
import { NETWORK_LIMITS } from "./limits.ts";
import type { AddressStore, ExposedApp } from "./store.ts";
import type { AddressType, IpAssignment } from "./types.ts";

export interface AllocateInput {
  type: AddressType;
  region?: string | undefined;
  service_name?: string | undefined;
  network?: string | undefined;
}

interface AddressParts {
  store: AddressStore;
  clock: Clock;
  /** Where service ports are opened. */
  listen_host: string;
  /** Addresses of this host that apps may allocate. */
  pool: readonly string[];
  region: string;
  /** Called after every change; resolves when it is in force. */
  onChange(): Promise<void>;
}

/**
 * Allocates addresses to apps. All service ports are opened on the shared one; an address of its own lets an app use a
 * port that another app has too. On loopback there are millions: all of 127.64.0.0/10 is local without setup. Elsewhere
 * they come from the setting.
 */
export class Addresses {
  readonly #parts: AddressParts;

  constructor(parts: AddressParts) {
    this.#parts = parts;
  }

  async list(app_id?: string): Promise<IpAssignment[]> {
    return await this.#parts.store.assignments(app_id);
  }

  async exposed(): Promise<ExposedApp[]> {
    return await this.#parts.store.exposed();
  }

  async allocate(app_id: string, input: AllocateInput): Promise<IpAssignment> {
    const { store, clock, region, onChange } = this.#parts;
    const had = await store.assignments(app_id);
    const shared = input.type === "shared_v4";
    const before = shared ? had.find(({ type }) => type === "shared_v4") : undefined;
    if (before) return before;
    for (const ip of this.#candidates(app_id, input.type, had)) {
      const assignment: IpAssignment = {
        ip,
        app_id,
        type: input.type,
        region: input.region ?? (shared ? "global" : region),
        shared,
        service_name: input.service_name ?? null,
        network: input.network ?? null,
        created_at: clock.now(),
      };
      if (!(await this.#insert(assignment))) continue;
      await onChange();
      return assignment;
    }
    fail("limit_reached", `no ${input.type} address is free`, {
      hint: "use a shared_v4 one, or give the box more with HANGAR_PROXY_ADDRESSES",
    });
  }

  /** Returns false when it is already taken. */
  async #insert(assignment: IpAssignment): Promise<boolean> {
    const { addresses_per_app } = NETWORK_LIMITS;
    const result = await this.#parts.store.insertAssignment(assignment, addresses_per_app);
    if (result === "limit")
      fail("limit_reached", `an app has at most ${addresses_per_app} addresses (limit addresses_per_app)`);
    if (result === "no_app") fail("not_found", "the app was deleted in the meantime");
    return result === "inserted" || (result === "exists" && assignment.shared);
  }

  async release(app_id: string, ip: string): Promise<void> {
    if (!(await this.#parts.store.deleteAssignment(app_id, ip))) fail("not_found", `the app has no address ${ip}`);
    await this.#parts.onChange();
  }

  /** Addresses in the order to try them. */
  *#candidates(app_id: string, type: AddressType, had: readonly IpAssignment[]): Generator<string> {
    if (type === "shared_v4") return yield shownAddress(this.#parts.listen_host);
    const six = type.endsWith("v6");
    if (type.startsWith("egress") || six) {
      for (let n = had.length; n < had.length + NETWORK_LIMITS.address_tries; n++) yield madeUp(app_id, type, n);
      return;
    }
    yield* this.#parts.pool.filter((ip) => isIPv4(ip));
    if (!this.#parts.listen_host.startsWith("127.")) return;
    for (let n = had.length; n < had.length + NETWORK_LIMITS.address_tries; n++) yield loopback(app_id, n);
  }
}

/** The address by which people reach `host`. */
function shownAddress(host: string): string {
  if (host !== "0.0.0.0" && host !== "::") return host;
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1";
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** An address in 127.64.0.0/10 derived from the app. */
function loopback(app_id: string, n: number): string {
  const [a = 0, b = 0, c = 0] = digest(`v4 ${app_id} ${n}`);
  return `127.${64 + (a % 64)}.${b}.${1 + (c % 254)}`;
}

/** A unique local address derived from the app. */
function madeUp(app_id: string, type: AddressType, n: number): string {
  const hex = digest(`${type} ${app_id} ${n}`).toString("hex");
  if (type === "egress_v4")
    return `198.18.${Number.parseInt(hex.slice(0, 2), 16)}.${Number.parseInt(hex.slice(2, 4), 16)}`;
  const prefix = type === "private_v6" ? "fdaa:ffff" : "fd68:6e67";
  return `${prefix}:${groupsText(hex.slice(0, 24))}`;
}
