import type { Static } from "typebox";
import { Type } from "#http/schema.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import { SPRITE_LIMITS } from "./limits.ts";

const text = Type.String();
const NAME = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";
export const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const LABEL = "^[^\\s,\\p{C}]([^,\\p{C}]*[^\\s,\\p{C}])?$";

const Name = Type.String({
  pattern: NAME,
  description: "1 to 63 lower-case letters, digits and dashes, not beginning or ending with a dash.",
});
const Labels = Type.Array(Type.String({ pattern: LABEL, maxLength: SPRITE_LIMITS.sprite_label_chars }), {
  maxItems: SPRITE_LIMITS.sprite_labels,
  description: "Labels, which policies of connectors may ask for.",
});
const UrlSettings = Type.Object({
  auth: Type.Optional(
    Type.Union([Type.Literal("sprite"), Type.Literal("public")], {
      description: "Who may open the sprite's URL: `sprite`, its organization, or `public`, everyone.",
    }),
  ),
  private_access: Type.Optional(Type.Union([Type.Literal("org_users"), Type.Literal("admins")])),
});
const Config = Type.Object({
  cpus: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024, description: "CPUs; 1 by default." })),
  ram_mb: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 16_777_216, description: "Memory in MB, rounded up to 256; 1024 by default." }),
  ),
  storage_gb: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MACHINE_LIMITS.root_disk_gb, description: "Size of its disk; 20 by default." }),
  ),
  region: Type.Optional(text),
});
const Environment = Type.Record(
  Type.String({ pattern: VARIABLE.source }),
  Type.String({ maxLength: SPRITE_LIMITS.sprite_variable_chars, pattern: "^[^\\u0000]*$" }),
  { description: "Variables of every command." },
);

export const CreateBody = Type.Object({
  name: Name,
  config: Type.Optional(Config),
  environment: Type.Optional(Environment),
  labels: Type.Optional(Labels),
  url_settings: Type.Optional(UrlSettings),
  wait_for_capacity: Type.Optional(
    Type.Boolean({ description: "Wait until a host has room, instead of failing with `insufficient_capacity`." }),
  ),
  runtime: Type.Optional(Type.Union([Type.Literal("default"), Type.Literal("dev")])),
  image: Type.Optional(
    Type.String({ minLength: 1, description: "Any image that a machine may boot; by default that of `sprite_image`." }),
  ),
  org_slug: Type.Optional(text),
});
export type CreateBody = Static<typeof CreateBody>;

export const UpdateBody = Type.Object({
  labels: Type.Optional(Labels),
  url_settings: Type.Optional(UrlSettings),
});

export const OrgQuery = Type.Object({
  org_slug: Type.Optional(Type.String({ description: "The organization; by default that of the token." })),
});

export const ListQuery = Type.Object({
  ...OrgQuery.properties,
  prefix: Type.Optional(Type.String({ maxLength: 63, description: "Only names that begin so." })),
  max_results: Type.Optional(Type.Integer({ minimum: 1, maximum: SPRITE_LIMITS.sprites_page })),
  continuation_token: Type.Optional(Type.String({ description: "`next_continuation_token` of the page before." })),
  bulk_load: Type.Optional(Type.Boolean()),
});
export type ListQuery = Static<typeof ListQuery>;

const Status = Type.String({
  enum: ["running", "warm", "cold"],
  description: "`running`; `warm`: asleep with its memory; `cold`: asleep without.",
});

export const Shown = Type.Object({
  id: text,
  name: text,
  organization: text,
  status: Status,
  labels: Type.Array(text),
  url: Type.String({ description: "Leads to the program in the sprite; who may open it says `url_settings`." }),
  url_settings: Type.Object({ auth: text, private_access: Type.Optional(text) }),
  config: Type.Object({
    cpus: Type.Integer(),
    ram_mb: Type.Integer(),
    storage_gb: Type.Integer(),
    region: Type.Optional(text),
  }),
  image: text,
  environment: Type.Record(text, text),
  machine_id: Type.String({ description: "The machine that the sprite is." }),
  app_name: Type.String({ description: "The app of that machine." }),
  version: Type.String({ description: "The version of the platform." }),
  created_at: text,
  updated_at: text,
  last_running_at: Type.Optional(text),
});
export type Shown = Static<typeof Shown>;

export const List = Type.Object({
  sprites: Type.Array(Shown),
  has_more: Type.Boolean(),
  next_continuation_token: Type.Optional(text),
  name: Type.String({ description: "The organization." }),
  running: Type.Integer(),
  warm: Type.Integer(),
  cold: Type.Integer(),
});

export const Restarted = Type.Object({ sprite_name: text, machine_id: text, message: text });

export const Checked = Type.Object({
  sprite_name: text,
  sprite_id: text,
  status: Type.String({ description: "`ok`, or `error` with a reason." }),
  reason: Type.Optional(text),
  checked_at: text,
  elapsed: Type.Integer({ description: "Milliseconds, with the time to wake." }),
});
