import type { Bus } from "#core/bus.ts";
import { type Clock, isoTime } from "#core/clock.ts";
import { ApiError, type Problem } from "#core/errors.ts";
import { orgOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import type { MachineUpdate } from "#machines/lifecycle/writer.ts";
import { SPRITE_LIMITS } from "./limits.ts";
import { shown, statusCounts } from "./responses.ts";
import * as schema from "./schema.ts";
import type { SpriteService } from "./service.ts";
import type { SpriteStore } from "./store.ts";
import type { SpriteSettings } from "./types.ts";
import type { UrlPlace } from "./urls/names.ts";
import { watchSprites } from "./watch.ts";

export interface SpriteRouteParts {
  sprites: SpriteService;
  store: SpriteStore;
  bus: Bus<MachineUpdate>;
  clock: Clock;
  /** The image of sprites that name none. */
  image: string;
  url_place: UrlPlace;
  /** There is a sprite from now on. */
  onCreate(): Promise<void>;
}

const MEMORY_STEP_MB = 256;
const DEFAULTS = { cpus: 1, ram_mb: 1024, storage_gb: 20 };
const ROW = { part: "sprites", style: "sprites" } as const;

export function spriteRoutes(parts: SpriteRouteParts): Row[] {
  return [...listRoutes(parts), ...oneRoutes(parts), ...actionRoutes(parts)];
}

function settingsOf({ config = {}, environment = {}, image }: schema.CreateBody, fallback: string): SpriteSettings {
  const { cpus = DEFAULTS.cpus, ram_mb = DEFAULTS.ram_mb, storage_gb = DEFAULTS.storage_gb, region } = config;
  const memory_mb = Math.ceil(ram_mb / MEMORY_STEP_MB) * MEMORY_STEP_MB;
  return { image: image ?? fallback, cpus, memory_mb, storage_gb, region: region ?? null, environment };
}

function listRoutes(parts: SpriteRouteParts): Row[] {
  const { sprites, store } = parts;
  return [
    route("POST /v1/sprites", {
      ...ROW,
      summary: "Create a sprite",
      description:
        "The names of an organization's sprites are unique. The answer comes as soon as the sprite is stored; the first " +
        "command waits for its start.",
      access: "create org",
      body: schema.CreateBody,
      check: environmentProblems,
      response: { status: 201, schema: schema.Shown },
      errors: [
        "sprite_exists",
        "sprite_creation_rate_limited",
        "concurrent_sprite_limit_exceeded",
        "image_not_found",
        "image_refused",
        "registry_unreachable",
        "insufficient_capacity",
        "limit_reached",
        "name_taken",
        "conflict",
      ],
      async handle({ body, ids, signal, ...call }) {
        const org = orgOf(call);
        const input = {
          name: body.name,
          settings: settingsOf(body, parts.image),
          labels: body.labels ?? [],
          url_auth: body.url_settings?.auth ?? "sprite",
          private_access: body.url_settings?.private_access ?? null,
          wait_for_capacity: body.wait_for_capacity ?? false,
        } as const;
        const made = await sprites.create(org, input, ids, signal).catch((thrown: unknown) => {
          throw body.image === undefined ? withImageHint(thrown, parts.image) : thrown;
        });
        await parts.onCreate();
        return shown(made, org, parts.url_place);
      },
    }),
    route("GET /v1/sprites", {
      ...ROW,
      summary: "List sprites, by name; with `Accept: application/x-ndjson` their states as they change",
      access: "read org",
      query: schema.ListQuery,
      lines: "asked",
      response: { status: 200, schema: schema.List },
      async handle({ query, ...call }) {
        const org = orgOf(call);
        const limit = query.max_results ?? SPRITE_LIMITS.sprites_page;
        const after = nameOf(query.continuation_token);
        const [found, states] = await Promise.all([
          store.list(org.id, { prefix: query.prefix ?? "", after, limit: limit + 1 }),
          store.states(org.id),
        ]);
        const page = found.slice(0, limit);
        const has_more = found.length > limit;
        return {
          sprites: page.map((sprite) => shown(sprite, org, parts.url_place)),
          has_more,
          ...(has_more ? { next_continuation_token: tokenOf(page.at(-1)?.name ?? "") } : {}),
          name: org.slug,
          ...statusCounts(states),
        };
      },
      stream({ query, signal, ...call }) {
        const most = query.max_results ?? SPRITE_LIMITS.sprites_page;
        return watchSprites(parts, orgOf(call), { prefix: query.prefix ?? "", most }, signal);
      },
    }),
  ];
}

/** What a schema of patterns does not refuse. */
function environmentProblems(body: unknown): Problem[] {
  const { environment = {} } = body as { environment?: unknown };
  if (environment === null || typeof environment !== "object") return [];
  const names = Object.keys(environment);
  const path = "body.environment";
  const most = SPRITE_LIMITS.sprite_variables;
  const many =
    names.length > most ? [{ path, problem: `has more than ${most} variables (limit sprite_variables)` }] : [];
  const allowed = "letters, digits and underscores, not beginning with a digit";
  const odd = names.filter((name) => !schema.VARIABLE.test(name));
  return [...many, ...odd.map((name) => ({ path: `${path}.${name}`, problem: "is no name of a variable", allowed }))];
}

const tokenOf = (name: string): string => Buffer.from(name).toString("base64url");
const nameOf = (token: string | undefined): string => Buffer.from(token ?? "", "base64url").toString();

function withImageHint(thrown: unknown, image: string): unknown {
  if (!(thrown instanceof ApiError) || !MISSING.has(thrown.code)) return thrown;
  return new ApiError(thrown.code, `the default image of sprites, ${image}, is not here: ${thrown.message}`, {
    hint: "make it once with `hangar images base sprite`, or name another one in `image`",
    cause: thrown,
  });
}
const MISSING: ReadonlySet<string> = new Set(["image_not_found", "registry_unreachable", "image_refused"]);

function oneRoutes(parts: SpriteRouteParts): Row[] {
  const { sprites } = parts;
  return [
    route("GET /v1/sprites/:sprite_name", {
      ...ROW,
      summary: "Get a sprite",
      access: "read org",
      query: schema.OrgQuery,
      response: { status: 200, schema: schema.Shown },
      async handle({ params, ...call }) {
        const org = orgOf(call);
        return shown(await sprites.get(org.id, params.sprite_name), org, parts.url_place);
      },
    }),
    route("PUT /v1/sprites/:sprite_name", {
      ...ROW,
      summary: "Change a sprite's labels or URL settings; what is not named stays",
      access: "write org",
      query: schema.OrgQuery,
      body: schema.UpdateBody,
      response: { status: 200, schema: schema.Shown },
      errors: ["conflict", "lease_held"],
      async handle({ params, body: { labels, url_settings = {} }, ...call }) {
        const org = orgOf(call);
        const { auth, private_access } = url_settings;
        const updated = await sprites.update(org.id, params.sprite_name, {
          ...(labels === undefined ? {} : { labels }),
          ...(auth === undefined ? {} : { url_auth: auth }),
          ...(private_access === undefined ? {} : { private_access }),
        });
        return shown(updated, org, parts.url_place);
      },
    }),
    route("DELETE /v1/sprites/:sprite_name", {
      ...ROW,
      summary: "Delete a sprite with its disk",
      access: "delete org",
      query: schema.OrgQuery,
      response: { status: 204 },
      errors: ["conflict", "lease_held", "host_unreachable", "wait_timeout"],
      async handle({ params, ...call }) {
        await sprites.delete(orgOf(call).id, params.sprite_name);
      },
    }),
  ];
}

const WAKES = ["wrong_state", "insufficient_capacity", "wait_timeout", "host_unreachable", "lease_held"] as const;

function actionRoutes({ sprites, clock }: SpriteRouteParts): Row[] {
  return [
    route("POST /v1/sprites/:sprite_name/restart", {
      ...ROW,
      summary: "Stop and start a sprite; its disk stays",
      access: "control org",
      query: schema.OrgQuery,
      response: { status: 200, schema: schema.Restarted },
      errors: WAKES,
      async handle({ params, ...call }) {
        const { name, machine_id } = await sprites.restart(orgOf(call).id, params.sprite_name);
        return { sprite_name: name, machine_id, message: "the sprite was restarted" };
      },
    }),
    route("POST /v1/sprites/:sprite_name/upgrade", {
      ...ROW,
      summary: "Upgrade a sprite: it runs on the platform's own version, so there is nothing to do",
      access: "control org",
      query: schema.OrgQuery,
      response: { status: 204 },
      async handle({ params, ...call }) {
        await sprites.get(orgOf(call).id, params.sprite_name);
      },
    }),
    route("GET /v1/sprites/:sprite_name/check", {
      ...ROW,
      summary: "Check that a sprite runs commands, waking it",
      access: "control org",
      query: schema.OrgQuery,
      response: { status: 200, schema: schema.Checked },
      async handle({ params, ...call }) {
        const { sprite, problem, elapsed_ms } = await sprites.check(orgOf(call).id, params.sprite_name);
        return {
          sprite_name: sprite.name,
          sprite_id: sprite.id,
          status: problem === undefined ? "ok" : "error",
          ...(problem === undefined ? {} : { reason: problem }),
          checked_at: isoTime(clock.now()),
          elapsed: Math.round(elapsed_ms),
        };
      },
    }),
  ];
}
