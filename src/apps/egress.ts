import type { Cidr } from "#core/cidr.ts";
import { closedRange } from "#core/egress.ts";
import { EGRESS_MODES, type EgressPolicy, parseEgressTarget } from "#core/egress-policy.ts";
import { fail, type Problem } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { appOf } from "#http/access.ts";
import { acts } from "#http/field-support.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { AppStore } from "./store.ts";

interface EgressParts {
  store: Pick<AppStore, "egress" | "putEgress">;
  /** Closed ranges that the operator opened. */
  opened: readonly Cidr[];
  /** Called after a change: running machines get the new policy. */
  onChange(app_id: string): void;
}

const ALLOWED = "an address, range or DNS name, then :PORT or :PORT-PORT, then /tcp or /udp";

/** The rules about egress policies. */
export class EgressService {
  readonly #parts: EgressParts;

  constructor(parts: EgressParts) {
    this.#parts = parts;
  }

  async get(app_id: string): Promise<EgressPolicy> {
    return await this.#parts.store.egress(app_id);
  }

  async set(
    app_id: string,
    wanted: { mode: EgressPolicy["mode"]; allow?: readonly string[] | undefined },
  ): Promise<EgressPolicy> {
    const allow = wanted.allow ?? [];
    const problems = [...modeProblems(wanted.mode, allow), ...allow.flatMap((text, at) => this.#problem(text, at))];
    if (problems.length > 0) {
      const [first] = problems;
      fail("invalid_request", `${first?.path} ${first?.problem}`, { details: problems });
    }
    const policy = { mode: wanted.mode, allow };
    if (!(await this.#parts.store.putEgress(app_id, policy))) fail("not_found", "the app was deleted in the meantime");
    this.#parts.onChange(app_id);
    return policy;
  }

  #problem(text: string, at: number): Problem[] {
    const path = `body.allow.${at}`;
    const target = parseEgressTarget(text);
    if (!target) return [{ path, problem: `${JSON.stringify(text)} cannot be read`, allowed: ALLOWED }];
    const closed = target.cidr && closedRange(target.cidr, this.#parts.opened);
    if (!closed) return [];
    const problem = `${text} is in ${closed.text} (${closed.what}), which is closed to machines`;
    return [{ path, problem, allowed: "ranges that the operator opens with HANGAR_EGRESS_ALLOW" }];
  }
}

function modeProblems(mode: EgressPolicy["mode"], allow: readonly string[]): Problem[] {
  if (mode === "list" && allow.length === 0)
    return [{ path: "body.allow", problem: "is empty, and mode is list", allowed: "at least one entry, or mode none" }];
  if (mode !== "list" && allow.length > 0)
    return [{ path: "body.allow", problem: `has entries, and mode is ${mode}`, allowed: "entries with mode list" }];
  return [];
}

const EgressResponse = Type.Object({
  mode: Type.String({ description: "`all`, `none` or `list`." }),
  allow: Type.Array(Type.String()),
});

const SetEgress = Type.Object({
  mode: acts(
    Type.Unsafe<EgressPolicy["mode"]>(Type.Union(EGRESS_MODES.map((mode) => Type.Literal(mode)))),
    "`all`: everything but the ranges that are closed to machines; `none`: nothing; `list`: what `allow` lists.",
  ),
  allow: Type.Optional(
    acts(
      Type.Array(Type.String({ maxLength: 300 }), { maxItems: LIMITS.egress_entries }),
      "Of mode `list`: addresses, ranges or DNS names, such as `api.example.com:443`, `203.0.113.0/24:5432/tcp` or `*.example.com`.",
    ),
  ),
});

export function egressRoutes(egress: EgressService): Row[] {
  return [
    route("GET /v1/apps/:app_name/egress", {
      summary: "Get an app's egress policy: what its machines may reach outside their private network",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: EgressResponse },
      handle: async (call) => shown(await egress.get(appOf(call).id)),
    }),
    route("PUT /v1/apps/:app_name/egress", {
      summary: "Set an app's egress policy; running machines follow at once",
      part: "apps",
      access: "write app",
      body: SetEgress,
      response: { status: 200, schema: EgressResponse },
      handle: async ({ body, ...call }) => shown(await egress.set(appOf(call).id, body)),
    }),
  ];
}

const shown = ({ mode, allow }: EgressPolicy) => ({ mode, allow: [...allow] });
