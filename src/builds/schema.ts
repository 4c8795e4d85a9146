import { isoTime } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import { Type } from "#http/schema.ts";
import { BUILD_LIMITS } from "./limits.ts";
import type { Build, OrgBuild } from "./types.ts";

const Nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
const Digest = Type.String({ pattern: "^[0-9a-f]{64}$", description: "SHA-256 of the file's bytes." });
const PATH = { minLength: 1, maxLength: 4096 } as const;

const Variables = (description: string) =>
  Type.Record(
    Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_.-]{0,127}$" }),
    Type.String({ maxLength: BUILD_LIMITS.variable_chars }),
    { maxProperties: BUILD_LIMITS.variables, description },
  );

export const FileDigests = Type.Object({
  files: Type.Array(Digest, { maxItems: BUILD_LIMITS.context_entries }),
});

export const MissingFiles = Type.Object({ missing: Type.Array(Type.String()) });
export const ReceivedFiles = Type.Object({ files: Type.Integer(), bytes: Type.Integer() });

const Entry = Type.Object({
  path: Type.String({ ...PATH, description: "Relative to the context's folder, with `/`." }),
  sha256: Type.Optional(Digest),
  link: Type.Optional(Type.String({ ...PATH, description: "Where a symbolic link leads." })),
  mode: Type.Optional(Type.Integer({ minimum: 0, maximum: 0o7777 })),
});

export const CreateBuild = Type.Object({
  files: Type.Array(Entry, {
    minItems: 1,
    maxItems: BUILD_LIMITS.context_entries,
    description: "The build context: files (with `sha256`), symbolic links (with `link`) and folders.",
  }),
  dockerfile: Type.Optional(Type.String({ ...PATH, description: "Its path in the context; default `Dockerfile`." })),
  target: Type.Optional(Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$", description: "The stage." })),
  args: Type.Optional(Variables("Build arguments (ARG).")),
  secrets: Type.Optional(
    Variables("Build secrets by id, for `RUN --mount=type=secret`. Kept in memory until the build has ended."),
  ),
  no_cache: Type.Optional(Type.Boolean({ description: "Run every step, also those that did not change." })),
  platform: Type.Optional(
    Type.String({ maxLength: LIMITS.slug_chars, description: "`linux/amd64`; refused unless it is the host's." }),
  ),
});

export const BuildResponse = Type.Object({
  id: Type.String(),
  state: Type.Union([
    Type.Literal("queued"),
    Type.Literal("running"),
    Type.Literal("complete"),
    Type.Literal("failed"),
    Type.Literal("cancelled"),
  ]),
  dockerfile: Type.String(),
  target: Nullable("The requested stage."),
  no_cache: Type.Boolean(),
  files: Type.Integer({ description: "Files of the context." }),
  image: Type.String({ description: "The name that the image gets." }),
  digest: Nullable("The image, once it is built: `sha256:…`"),
  step: Nullable("The step of the Dockerfile that began last: `3/7 RUN make`."),
  error: Nullable("Why it failed."),
  created_by: Type.String(),
  created_at: Type.String(),
  started_at: Nullable("When it left the queue."),
  ended_at: Nullable("When it ended."),
});

export const OrgBuildResponse = Type.Object({ app_name: Type.String(), ...BuildResponse.properties });
export const OrgBuildList = Type.Object({ builds: Type.Array(OrgBuildResponse) });
export const OrgBuildsQuery = Type.Object({
  state: Type.Optional(
    Type.Array(BuildResponse.properties.state, { description: "Only builds in one of these states; repeated." }),
  ),
});
export const BuildList = Type.Object({ builds: Type.Array(BuildResponse) });
export const LogQuery = Type.Object({ follow: Type.Optional(Type.Boolean()) });
export const LogResponse = Type.Object({ log: Type.String() });

const time = (at: number | null): string | null => (at === null ? null : isoTime(at));

export const buildResponse = (build: Build) => ({
  id: build.id,
  state: build.state,
  dockerfile: build.dockerfile,
  target: build.target,
  no_cache: build.no_cache,
  files: build.files,
  image: build.image,
  digest: build.digest,
  step: build.step,
  error: build.error,
  created_by: build.created_by,
  created_at: isoTime(build.created_at),
  started_at: time(build.started_at),
  ended_at: time(build.ended_at),
});

export const orgBuildResponse = ({ app_name, ...build }: OrgBuild) => ({ app_name, ...buildResponse(build) });
