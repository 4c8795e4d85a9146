import { LIMITS } from "#core/limits.ts";
import { acts } from "#http/field-support.ts";
import { Type } from "#http/schema.ts";

export const CreateApp = Type.Object({
  app_name: Type.Optional(
    acts(Type.String(), "1 to 63 lower-case letters, digits and dashes; one namespace for all organizations."),
  ),
  name: Type.Optional(acts(Type.String(), "Alias of app_name.")),
  org_slug: Type.Optional(acts(Type.String(), "Organization; the token's own, or `personal`, by default.")),
  network: Type.Optional(
    acts(
      Type.String({ maxLength: LIMITS.slug_chars }),
      "Private network (default: `default`). Machines of one organization and network reach each other.",
    ),
  ),
});

export const AppResponse = Type.Object({
  id: Type.String(),
  internal_numeric_id: Type.Integer(),
  name: Type.String(),
  status: Type.String({ description: "`pending` until the first machine, then `deployed`." }),
  network: Type.String(),
  machine_count: Type.Integer(),
  volume_count: Type.Integer(),
  organization: Type.Object({ name: Type.String(), slug: Type.String(), internal_numeric_id: Type.Integer() }),
  created_at: Type.Integer({ description: "Epoch milliseconds." }),
});

export const AppList = Type.Object({ total_apps: Type.Integer(), apps: Type.Array(AppResponse) });

export const OrgQuery = Type.Object({ org_slug: Type.Optional(Type.String()) });

export const DeleteQuery = Type.Object({
  force: Type.Optional(Type.Boolean({ description: "Destroy the app's machines and volumes too." })),
});

const Value = Type.String();

export const ChangeSecrets = Type.Object({
  values: Type.Record(Type.String(), Type.Union([Value, Type.Null()]), { description: "Name to value; null removes." }),
});

export const SetSecret = Type.Object({ value: Value });

export const SecretResponse = Type.Object({
  name: Type.String(),
  digest: Type.String({ description: "Changes when the value changes; says nothing else about it." }),
  created_at: Type.String(),
  updated_at: Type.String(),
});

export const SecretList = Type.Object({ secrets: Type.Array(SecretResponse) });
export const SecretChange = Type.Object({ secrets: Type.Array(SecretResponse), version: Type.Integer() });
export const SecretSet = Type.Object({ ...SecretResponse.properties, version: Type.Integer() });
export const SecretGone = Type.Object({ version: Type.Integer() });
