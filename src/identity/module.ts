/** Constructs the identity module: the OIDC issuer, the authentication of machines, and the API inside each machine. */
import type { AuthStore } from "#auth/store.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Access, Guard, MachineAuthenticator } from "#http/access.ts";
import type { Idempotency } from "#http/idempotency.ts";
import type { RateLimiter } from "#http/rate.ts";
import type { Row } from "#http/route.ts";
import { createServer } from "#http/server.ts";
import type { MachineStore } from "#machines/store.ts";
import { AwsTokens } from "./aws.ts";
import { KeyRing } from "./keys.ts";
import { MachineLocalApi } from "./local-api.ts";
import { localGuard, tokensInside } from "./local-guard.ts";
import { MachineApiListener } from "./machine-api-listener.ts";
import { MachineSocketAuthenticator } from "./machine-authenticator.ts";
import { pushGuard } from "./push-guard.ts";
import { issuerRoutes, keyRoutes, tokenRoutes } from "./routes.ts";
import type { KeyStore } from "./store.ts";
import { Issuer } from "./tokens.ts";

interface IdentityParts {
  store: KeyStore;
  auth: AuthStore;
  machines: MachineStore;
  secrets(app_id: string): Promise<Record<string, string>>;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  /** Root of the machines' directories. */
  dir: string;
  lifetime_s: number;
  base_url(): string;
  issuer_url(): string;
  sprites_base_url(): string;
}

interface StartParts {
  /** Verifies the platform's tokens. */
  guard: Guard;
  idempotency: Idempotency;
  rate?: RateLimiter;
}

export class IdentityModule {
  readonly issuer: Issuer;
  readonly machine_authenticator: MachineSocketAuthenticator;
  /** Routes of the platform, without those at machines' sockets. */
  readonly rows: Row[];
  /** The API inside machines. Drivers may use it before it is started, and wait. */
  readonly local: MachineLocalApi;
  /** The gateway over private networks. */
  readonly network = new MachineApiListener();
  readonly #parts: IdentityParts;
  readonly #aws: AwsTokens;
  readonly #token_rows: Row[];

  constructor(parts: IdentityParts) {
    const { clock, auth, machines, base_url, issuer_url, lifetime_s, sprites_base_url } = parts;
    const keys = new KeyRing(parts);
    this.#parts = parts;
    this.issuer = new Issuer({ keys, clock, orgs: auth, lifetime_s, base_url, issuer_url });
    const gateway_audience = (): string => `${sprites_base_url()}/v1/gateway`;
    this.machine_authenticator = new MachineSocketAuthenticator({
      machines,
      orgs: auth,
      issuer: this.issuer,
      gateway_audience,
    });
    this.#aws = new AwsTokens({ ...parts, orgs: auth, issuer: this.issuer });
    const routes = { issuer: this.issuer, keys, orgs: auth, clock };
    this.rows = [...issuerRoutes(routes), ...keyRoutes(routes)];
    this.#token_rows = tokenRoutes(routes);
    this.local = new MachineLocalApi({
      dir: parts.dir,
      machine_authenticator: this.machine_authenticator,
      log: parts.log,
      installFiles: (id, folder) => this.#aws.install(id, folder),
      removeFiles: (id) => this.#aws.remove(id),
      exists: async (id) => !["destroyed", undefined].includes((await machines.find(id))?.state),
    });
  }

  /** Guards of the platform's API: routes that machines may call as themselves accept identity tokens, too. */
  guards(platform: Guard): { push_guard: Guard; guardOf(row: Row): Guard | undefined } {
    const audience = (): string => `${this.#parts.base_url()}/prometheus`;
    const identify: MachineAuthenticator["identify"] = (request) =>
      this.machine_authenticator.identifyByToken(request, audience());
    const push_guard = pushGuard(platform, { identify }, "outside");
    return { push_guard, guardOf: ({ by_machines }) => (by_machines ? push_guard : undefined) };
  }

  /**
   * Opens the API inside machines: without a token a machine gets those of `rows` that are for machines or about
   * itself; with a token of the platform all of them.
   */
  async start(rows: readonly Row[], { guard, ...common }: StartParts): Promise<void> {
    const { machine_authenticator } = this;
    const tokens = tokensInside(guard, machine_authenticator);
    const own = new Set(rows.filter(({ access, part }) => INSIDE.has(access) || part === "databases"));
    const parts = { ...common, clock: this.#parts.clock, log: this.#parts.log, machine_authenticator };
    const machine = localGuard(machine_authenticator, tokens);
    const push = pushGuard(tokens, machine_authenticator, "inside");
    const guardOf = (row: Row): Guard => (row.by_machines ? push : own.has(row) ? machine : tokens);
    await this.local.start(createServer({ ...parts, rows: [...this.#token_rows, ...rows], guard: machine, guardOf }));
    const inside = rows.filter(({ access, by_machines }) => access === "machine" || by_machines);
    await this.network.start(createServer({ ...parts, rows: inside, guard: machine, guardOf }));
  }

  async close(): Promise<void> {
    this.#aws.close();
    await this.network.close();
    await this.local.close();
  }
}

/**
 * Access rules that need no token at a machine's socket: machine routes, its own resources, and its app's database
 * leases. Open routes, such as the issuer's keys, are open here too.
 */
const INSIDE: ReadonlySet<Access> = new Set(["machine", "read machine", "control machine"] as const);
