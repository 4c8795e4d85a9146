/** Tests a connector with the same request path as a machine, discarding the response. */
import { ServerResponse } from "node:http";
import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import type { Gateway } from "./gateway.ts";
import { CONNECTOR_LIMITS as LIMITS } from "./limits.ts";
import { pathProblem } from "./paths.ts";
import { PROVIDERS } from "./providers.ts";
import type { SpriteFinder } from "./sprite.ts";
import type { Connection } from "./types.ts";
import type { Upstream } from "./upstream.ts";

interface TestInput {
  sprite?: string | undefined;
  labels?: readonly string[] | undefined;
  path?: string | undefined;
}

interface Outcome {
  status: "ok" | "error";
  message: string;
  latency_ms: number;
}

interface TesterParts {
  gateway: Gateway;
  upstream: Upstream;
  sprites: SpriteFinder;
  clock: Clock;
}

export class GatewayTester {
  readonly #parts: TesterParts;

  constructor(parts: TesterParts) {
    this.#parts = parts;
  }

  async test(connection: Connection, input: TestInput, signal: AbortSignal): Promise<Outcome> {
    const { clock } = this.#parts;
    const started = clock.monotonic();
    const outcome = (status: Outcome["status"], message: string): Outcome => ({
      status,
      message,
      latency_ms: Math.round(clock.monotonic() - started),
    });
    const refused = await this.#refusal(connection, input);
    if (refused !== undefined) return outcome("error", refused);
    try {
      const status = await this.#call(connection, pathOf(connection, input), signal);
      return outcome(status < 400 ? "ok" : "error", `the provider answered ${status}`);
    } catch (thrown) {
      if (thrown instanceof ApiError) return outcome("error", thrown.message);
      throw thrown;
    }
  }

  async #refusal(connection: Connection, input: TestInput): Promise<string | undefined> {
    const [path = ""] = pathOf(connection, input).split("?");
    const encoded = connection.provider_info.encoded_paths ?? false;
    if (input.sprite === undefined) {
      const problem = pathProblem(path, { encoded });
      return problem === undefined ? undefined : `the path ${problem}`;
    }
    const labels = input.labels ?? (await this.#parts.sprites.labels(connection.org_id, input.sprite));
    const sprite = { name: input.sprite, labels };
    const verdict = this.#parts.gateway.verdict(connection.access_policy, sprite, path, encoded);
    return verdict.allowed ? undefined : `${verdict.reason} (rule: ${verdict.rule})`;
  }

  async #call(connection: Connection, target: string, signal: AbortSignal): Promise<number> {
    const { gateway, upstream } = this.#parts;
    const at = target.indexOf("?");
    const path = at < 0 ? target : target.slice(0, at);
    const query = at < 0 ? "" : target.slice(at);
    const probe = { method: "GET", path, query, headers: { accept: "*/*" } };
    const { destination, outgoing } = await gateway.compose(connection, probe);
    const enough = new AbortController();
    const until = AbortSignal.any([signal, enough.signal, AbortSignal.timeout(LIMITS.test_timeout_ms)]);
    const passing = { method: "GET", outgoing, body: undefined, signal: until };
    const { status } = await upstream.pass(passing, destination.guarded, {
      begin() {
        // The status is enough; the body is not read.
        setImmediate(() => enough.abort());
        return new ServerResponse({ method: "GET" } as never);
      },
    });
    return status;
  }
}

function pathOf({ provider, provider_info }: Connection, { path }: TestInput): string {
  return path ?? provider_info.test_path ?? PROVIDERS[provider]?.test_path ?? "/";
}
