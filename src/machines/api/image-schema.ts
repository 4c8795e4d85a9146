import { LIMITS } from "#core/limits.ts";
import { Type } from "#http/schema.ts";

const Text = (description: string) => Type.String({ description });

export const OrgQuery = Type.Object({
  org_slug: Type.Optional(
    Text(
      "The organization whose images they are; left out with a full-access token: the platform's, which all may use.",
    ),
  ),
});

export const ImageQuery = Type.Object({
  image: Type.String({
    minLength: 1,
    maxLength: LIMITS.image_name_chars,
    description: "`web:1`, `ghcr.io/acme/web:1`, `web@sha256:…`",
  }),
  ...OrgQuery.properties,
});

export const ResolveQuery = Type.Object({ image: ImageQuery.properties.image });

const Healthcheck = Type.Object(
  {
    test: Type.Array(Type.String(), { description: "`NONE`, `CMD` and words, or `CMD-SHELL` and a line." }),
    interval_ms: Type.Optional(Type.Integer()),
    timeout_ms: Type.Optional(Type.Integer()),
    start_period_ms: Type.Optional(Type.Integer()),
  },
  { description: "The HEALTHCHECK of its Dockerfile." },
);

export const ResolvedImage = Type.Object({
  image: Text("The requested name."),
  digest: Text("The digest that the name resolves to now."),
  reference: Text("The name pinned to that digest, for a machine's `config.image`: `web:1@sha256:…`"),
  healthcheck: Type.Optional(Healthcheck),
});

export const ImportQuery = Type.Object({
  name: Type.String({ minLength: 1, maxLength: LIMITS.image_name_chars, description: "The image's name: `web:1`" }),
  ...OrgQuery.properties,
});

export const PullImage = Type.Object({
  image: Type.String({ minLength: 1, maxLength: LIMITS.image_name_chars }),
  org_slug: Type.Optional(Type.String()),
});

export const CollectInput = Type.Object({
  dry_run: Type.Optional(Type.Boolean({ description: "Only list what would be deleted." })),
  all: Type.Optional(
    Type.Boolean({
      description: "Also recently used or replaced images, if no machine and no release needs them.",
    }),
  ),
});

const SUMMARY = {
  name: Type.String(),
  digest: Text("The reference that machines boot, even if the tag moves later."),
  owner: Text("The id of an organization, or `platform`."),
  source: Text("`pulled`, `imported` or `built-in`"),
  layers: Type.Integer(),
  bytes: Type.Integer({ description: "Unpacked; layers that several images share count for each." }),
  complete: Type.Boolean({
    description: "Whether all layers are local; missing ones are pulled for the first machine.",
  }),
  machines: Type.Integer({ description: "Number of machines that boot from it." }),
  created_at: Type.String(),
  used_at: Type.String(),
};

export const ImageResponse = Type.Object(SUMMARY, { title: "Image" });
export const ImageList = Type.Object({ images: Type.Array(ImageResponse) });

export const ImageDetailsResponse = Type.Object(
  {
    ...SUMMARY,
    architecture: Type.String(),
    config: Type.Object({
      entrypoint: Type.Array(Type.String()),
      cmd: Type.Array(Type.String()),
      env: Type.Record(Type.String(), Type.String()),
      user: Type.String(),
      working_dir: Type.String(),
      stop_signal: Type.Optional(Type.String()),
      healthcheck: Type.Optional(Healthcheck),
    }),
    labels: Type.Record(Type.String(), Type.String()),
    exposed_ports: Type.Array(Type.String()),
    layer_list: Type.Array(
      Type.Object({ diff_id: Type.String(), bytes: Type.Integer(), entries: Type.Integer(), here: Type.Boolean() }),
    ),
    machine_ids: Type.Array(Type.String()),
  },
  { title: "ImageDetails" },
);

export const CollectedResponse = Type.Object({
  dry_run: Type.Boolean(),
  images: Type.Array(Type.Object({ name: Type.String(), owner: Type.String(), digest: Type.String() })),
  layers: Type.Array(Type.Object({ diff_id: Type.String(), bytes: Type.Integer() })),
  bytes: Type.Integer(),
});
