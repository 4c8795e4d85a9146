/**
 * Which machine a request comes from. Three ways, and nothing a machine says about itself counts:
 *
 * - its own socket: the connection was taken there;
 * - its private address: the connection comes from it, inside the private network;
 * - an identity token that was made for the gateway.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { AuthStore } from "#auth/store.ts";
import { labelsOf, SpriteCaller, type SpriteFinder } from "#connectors/sprite.ts";
import { fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { MachineAuthenticator } from "#http/access.ts";
import type { MachineStore } from "#machines/store.ts";
import type { Machine } from "#machines/types.ts";
import type { Issuer } from "./tokens.ts";

interface AuthenticatorParts {
  machines: Pick<MachineStore, "find">;
  orgs: Pick<AuthStore, "findOrgById">;
  issuer: Issuer;
  /** The required audience of a token. */
  gateway_audience(): string;
}

/** Pages of an organization's machines searched for a name. */
const PAGES = 20;

/** Finds labels of machines by name, for policy previews. */
export function spriteFinder(machines: Pick<MachineStore, "listOrg">): SpriteFinder {
  return {
    async labels(org_id, name) {
      let last: Machine | undefined;
      for (let page = 0; page < PAGES; page++) {
        const after = last ? { after: [last.updated_at, last.id] as const } : {};
        const list = await machines.listOrg(org_id, { page: { limit: LIMITS.page_items, ...after } });
        const found = list.find((machine) => machine.name === name);
        if (found) return labelsOf(found.config.metadata);
        last = list.at(-1);
        if (!last) break;
      }
      return [];
    },
  };
}

/** A calling machine, with what the platform knows about it. */
export class MachineCaller extends SpriteCaller {
  readonly machine: Machine;
  /** As scraped series have them. */
  readonly series_labels: Readonly<Record<string, string>>;

  constructor(machine: Machine, org: { id: string; slug: string }) {
    const { id: machine_id, name, config } = machine;
    super({ machine_id, name, labels: labelsOf(config.metadata), org });
    this.machine = machine;
    const { app_name: app, host_id: host, instance_id: instance, region } = machine;
    this.series_labels = { app, host, instance, region };
  }
}

export class MachineSocketAuthenticator implements MachineAuthenticator {
  readonly #parts: AuthenticatorParts;
  readonly #sockets = new WeakMap<Socket, string>();

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
  }

  /** Marks a connection accepted at the machine's own socket. */
  mark(connection: Socket, machine_id: string): void {
    this.#sockets.set(connection, machine_id);
  }

  async identify({ socket, headers }: IncomingMessage): Promise<MachineCaller> {
    const id =
      this.#sockets.get(socket) ??
      (await this.#byAddress(socket.remoteAddress)) ??
      (await this.#byToken(headers.authorization, this.#parts.gateway_audience()));
    return await this.#callerOf(id);
  }

  /** Only by an identity token for this audience. */
  async identifyByToken({ headers }: IncomingMessage, audience: string): Promise<MachineCaller> {
    return await this.#callerOf(await this.#byToken(headers.authorization, audience));
  }

  async #callerOf(id: string | undefined): Promise<MachineCaller> {
    const machine = id === undefined ? undefined : await this.#parts.machines.find(id);
    const org = machine && (await this.#parts.orgs.findOrgById(machine.org_id));
    if (!machine || !org) return unknown("this request does not come from a machine");
    // A machine without a boot cannot call; its token or address was reused.
    if (machine.boot === null) return unknown(`machine ${machine.id} is ${machine.state}`);
    return new MachineCaller(machine, { id: org.id, slug: org.slug });
  }

  /** The address contains the machine's id (machines/names.ts); the machine must match. */
  async #byAddress(address: string | undefined): Promise<string | undefined> {
    if (!address?.startsWith("fdaa:")) return undefined;
    const digits = expanded(address);
    const id = digits.slice(16, 30);
    const machine = await this.#parts.machines.find(id);
    return machine && expanded(machine.private_ip) === digits ? id : undefined;
  }

  async #byToken(authorization: string | undefined, audience: string): Promise<string | undefined> {
    const [, token] = /^Bearer (\S+)$/i.exec(authorization ?? "") ?? [];
    // Our other tokens have no dots; a caller's own credential may be anything.
    if (token?.split(".").length !== 3) return undefined;
    const claims = await this.#parts.issuer.verify(token, audience);
    return String(claims["machine_id"]);
  }
}

function unknown(why: string): never {
  fail("unauthorized", `authentication failed: ${why}`, {
    hint: "call from inside a machine: curl --unix-socket /.svc/api http://localhost/v1/gateway/…",
  });
}

/** An IPv6 address as 32 hex digits. */
export function expanded(address: string): string {
  const [head = "", tail] = address.split("::");
  const groups = (text: string | undefined): string[] => (text ? text.split(":") : []);
  const [left, right] = [groups(head), groups(tail)];
  const middle = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...middle, ...right].map((group) => group.padStart(4, "0")).join("");
}
