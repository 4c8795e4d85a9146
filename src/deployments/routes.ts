import type { Problem } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { type Admitted, appOf, type Caller } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { StreamItem } from "#http/stream.ts";
import { DEPLOYMENT_LIMITS } from "./limits.ts";
import { type Deployment, type DeploymentService, refuse } from "./service.ts";
import { commandOf, type DeploymentInput } from "./types.ts";

const optional = Type.Optional;

const Input = Type.Object({
  action: Type.Union([Type.Literal("deploy"), Type.Literal("rollback"), Type.Literal("scale")]),
  image: optional(
    Type.String({
      minLength: 1,
      maxLength: LIMITS.image_name_chars,
      pattern: "^[^\\s-]\\S*$",
      description: "`deploy`: `nginx:1.27`, `nginx@sha256:…`, or `builds/APP:latest` for the newest build.",
    }),
  ),
  port: optional(
    Type.Integer({
      minimum: 1,
      maximum: 65_535,
      description: "`deploy`: the port that the server listens on, for an app without a release.",
    }),
  ),
  strategy: optional(Type.Union(["rolling", "canary", "bluegreen", "immediate"].map((name) => Type.Literal(name)))),
  preview: optional(
    Type.String({
      minLength: 1,
      maxLength: LIMITS.description_chars,
      pattern: "^[^\\s-]\\S*$",
      description:
        "`deploy`: the preview app of this branch is made or updated, with the config of the app's newest release.",
    }),
  ),
  version: optional(
    Type.Integer({ minimum: 1, description: "`rollback`: the release; left out, the last complete one before." }),
  ),
  counts: optional(
    Type.Record(
      Type.String({ pattern: "^[\\w-]{1,63}$" }),
      Type.Integer({ minimum: 0, maximum: DEPLOYMENT_LIMITS.scale_machines }),
      { description: "`scale`: machines per process group." },
    ),
  ),
  memory_mb: optional(
    Type.Integer({ minimum: 1, maximum: 1_048_576, description: "`scale`: memory of every machine." }),
  ),
  cpus: optional(Type.Integer({ minimum: 1, maximum: 999, description: "`scale`: CPUs of every machine." })),
  message: optional(
    Type.String({ maxLength: LIMITS.description_chars, description: "Why, for people who read the releases." }),
  ),
  dry_run: optional(Type.Boolean({ description: "Answers what would be done, and changes nothing." })),
});

const Outcome = Type.Object({
  command: Type.String({ description: "The `hangar` command that does the same." }),
  lines: Type.Array(Type.String(), { description: "What would be done, or what was done." }),
  version: Type.Union([Type.Integer(), Type.Null()], { description: "The new release; null for a dry run." }),
});

/** Fields that an action takes; the first is the one that it needs, unless there are several. */
const FIELDS: Record<DeploymentInput["action"], readonly string[]> = {
  deploy: ["image", "port", "strategy", "preview", "message"],
  rollback: ["version", "message"],
  scale: ["counts", "memory_mb", "cpus"],
};

/** What the schema cannot say. */
function problemsOf(body: unknown): Problem[] {
  const { action, dry_run: _, ...given } = body as DeploymentInput & { dry_run?: boolean };
  const fields = FIELDS[action] ?? [];
  const names = Object.keys(given);
  const foreign = names
    .filter((name) => fields.length > 0 && !fields.includes(name))
    .map((name) => ({ path: `body.${name}`, problem: `is not for ${action}`, allowed: fields.join(", ") }));
  if (action === "deploy" && given.image === undefined)
    return [...foreign, { path: "body.image", problem: "is required", allowed: "the name of an image" }];
  if (action === "scale" && names.length === 0)
    return [{ path: "body.counts", problem: "is required", allowed: "counts, memory_mb or cpus" }];
  return foreign;
}

interface Parts {
  deployments: DeploymentService;
  /** A token for the deploy, with the caller's rights on this app and no more. */
  deployToken(caller: Caller, app: { id: string; name: string }, org_slug: string): Promise<string>;
}

type Body = DeploymentInput & { dry_run?: boolean | undefined };

export function deploymentRoutes({ deployments, deployToken }: Parts): Row[] {
  const wanted = async (caller: Caller, admitted: Admitted, input: Body) => {
    const app = appOf(admitted);
    return { app, input, token: await deployToken(caller, app, admitted.org?.slug ?? "") };
  };
  const wordsOf = (admitted: Admitted, body: Body): string =>
    ["hangar", ...commandOf(appOf(admitted).name, body).map(quoted)].join(" ");

  async function* followed(begin: () => Promise<Deployment>, signal: AbortSignal): AsyncGenerator<StreamItem[]> {
    const { output, ended } = await begin();
    for await (const lines of output.read(signal)) yield lines.map((text) => ({ event: "output", data: { text } }));
    if (signal.aborted) return;
    const { ok, result } = await ended;
    const { error, hint, version } = result;
    yield [{ event: "end", data: ok ? { complete: true, version } : { complete: false, error, hint } }];
  }

  return [
    route("POST /v1/apps/:app_name/deployments", {
      summary: "Deploy an image, roll back or scale, as the `hangar` command does",
      description:
        "It goes on when the caller leaves. A server-sent event stream of its output unless JSON is requested; a dry run is JSON. A deploy that fails is rolled back.",
      part: "apps",
      access: "write app",
      body: Input,
      check: problemsOf,
      response: { status: 200, schema: Outcome },
      errors: ["deploy_failed", "conflict", "overloaded"],
      async handle({ body, caller, signal, ...admitted }) {
        const input = await wanted(caller, admitted, body as Body);
        const command = wordsOf(admitted, body as Body);
        if (body.dry_run) return { command, lines: await deployments.plan(input), version: null };
        const { output, ended } = await deployments.begin(input);
        const { ok, result } = await ended;
        if (!ok) refuse(result);
        const lines: string[] = [];
        for await (const more of output.read(signal)) lines.push(...more);
        return { command, lines, version: result.version ?? null };
      },
      stream: ({ body, caller, signal, ...admitted }) =>
        (body as Body).dry_run
          ? undefined
          : followed(async () => deployments.begin(await wanted(caller, admitted, body as Body)), signal),
    }),
  ];
}

const quoted = (word: string): string => (/^[\w./:@=%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);
