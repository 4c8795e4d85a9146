/** Which sprite a request to a URL is for, and whether its sender may. */
import type { IncomingMessage } from "node:http";
import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import type { Guard } from "#http/access.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import type { Org } from "../service.ts";
import type { SpriteStore } from "../store.ts";
import type { Sprite, SpriteView } from "../types.ts";
import { orgTag, readLabel } from "./names.ts";

interface AdmissionParts {
  store: SpriteStore;
  guard: Guard;
  clock: Clock;
  zone: string;
}

/** An answer of ours, in words for a person in front of a browser. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class Admission {
  readonly #parts: AdmissionParts;
  #orgs = new Map<string, Org>();
  #looked_at = Number.NEGATIVE_INFINITY;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  /** Whether an organization has begun to have sprites. */
  async isNeeded(): Promise<boolean> {
    if (this.#orgs.size === 0) await this.#look();
    return this.#orgs.size > 0;
  }

  /** An organization may have begun in this process just now. */
  expectOrg(): void {
    this.#looked_at = Number.NEGATIVE_INFINITY;
  }

  /** Without a token a private sprite looks as one that does not exist. */
  async admit(request: IncomingMessage): Promise<SpriteView> {
    const { org, sprite } = await this.#find(request.headers.host ?? "");
    if (sprite?.url_auth === "public") return sprite;
    const { guard } = this.#parts;
    const { authorization } = request.headers;
    try {
      const caller = await guard.identify(authorization, "any", request);
      if (!org || !sprite) throw new Refusal(404, `there is no sprite at ${shownHost(request)}`);
      for (const access of accessOf(sprite)) await guard.admit(caller, access, { org_slug: org.slug });
      return sprite;
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      if (thrown.code === "unauthorized") throw new Refusal(401, `${PRIVATE}; ${thrown.message}`);
      // Who may see nothing of the organization does not learn what it has.
      if (thrown.code === "not_found") throw new Refusal(404, `there is no sprite at ${shownHost(request)}`);
      throw new Refusal(thrown.http, thrown.message);
    }
  }

  async #find(host: string): Promise<{ org?: Org; sprite?: SpriteView }> {
    const { store, zone } = this.#parts;
    const name = host.toLowerCase().replace(/:\d+$/, "").replace(/\.$/, "");
    const label = name.endsWith(`.${zone}`) ? readLabel(name.slice(0, -zone.length - 1)) : undefined;
    const org = label && (await this.#org(label.tag));
    if (!label || !org) return {};
    const sprite = (await store.find(org.id, label.name)) ?? (await store.findByMachine(org.id, label.name));
    const gone = !sprite || sprite.state === "deleting" || sprite.machine_state === "destroyed";
    return gone ? { org } : { org, sprite };
  }

  async #org(tag: string): Promise<Org | undefined> {
    const now = this.#parts.clock.monotonic();
    if (!this.#orgs.has(tag) && now - this.#looked_at >= SPRITE_LIMITS.sprite_url_look_ms) await this.#look();
    return this.#orgs.get(tag);
  }

  async #look(): Promise<void> {
    this.#looked_at = this.#parts.clock.monotonic();
    this.#orgs = new Map((await this.#parts.store.orgs()).map((org) => [orgTag(org.id), org]));
  }
}

const PRIVATE =
  "this URL is private: send a token of the sprite's organization as `Authorization: Bearer <token>`, or make it public " +
  'with {"url_settings": {"auth": "public"}}';

/** Whoever reaches the port of a program can make it do things. Administrators are those who may also delete. */
const accessOf = ({ private_access }: Pick<Sprite, "private_access">) =>
  private_access === "admins" ? (["control org", "delete org"] as const) : (["control org"] as const);

const HOST_SHOWN = 260;
const shownHost = ({ headers: { host = "" } }: IncomingMessage): string => host.slice(0, HOST_SHOWN);
