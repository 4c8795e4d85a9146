import { assert } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { type Guard, orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Method, type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { RegistryHttp } from "./http.ts";
import type { Registry } from "./service.ts";

/** HEAD is included in GET. */
const METHODS: readonly Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Tags per repository in a list; the registry API has the rest. */
const LISTED_TAGS = 100;

const RepositoryResponse = Type.Object({
  name: Type.String({ description: "Repository path after the platform's address: `personal/web`." }),
  tags: Type.Array(Type.Object({ tag: Type.String(), digest: Type.String() })),
  manifests: Type.Integer(),
  bytes: Type.Integer({ description: "Compressed size of its blobs." }),
  updated_at: Type.Integer({ description: "Milliseconds since 1970." }),
});

export function registryRoutes(registry: Registry, guard: Guard, clock: Clock): Row[] {
  const http = new RegistryHttp({ registry, guard, clock });
  return [
    route("GET /v1/registry/repositories", {
      summary: "List the repositories that were pushed, with their tags",
      part: "images",
      access: "read org",
      query: Type.Object({ org_slug: Type.Optional(Type.String()) }),
      pages: inPages("repositories", ["text"]),
      response: { status: 200, schema: Type.Object({ repositories: Type.Array(RepositoryResponse) }) },
      async handle({ page, ...call }) {
        const { id, slug } = orgOf(call);
        const { after: [last] = [""], limit } = page.request;
        const [found, all_tags] = await Promise.all([
          registry.repositories(id, { last, limit }),
          registry.tagsOfEach(id, { last, limit }, LISTED_TAGS),
        ]);
        const tagsOf = Map.groupBy(all_tags, ({ repository }) => repository);
        const list = page.take(found, ({ repository }) => [repository]);
        const repositories = list.map(({ repository, manifests, bytes, touched_at }) => {
          const tags = (tagsOf.get(repository) ?? []).map(({ tag, digest }) => ({ tag, digest }));
          return { name: `${slug}/${repository}`, tags, manifests, bytes, updated_at: touched_at };
        });
        return { repositories };
      },
    }),
    ...METHODS.map(
      (method): Row => ({
        method,
        path: "/v2/*",
        summary: "The registry: the OCI distribution API, for docker, podman, skopeo and crane",
        description:
          "Names are `ORGANIZATION/REPOSITORY`. The token is the password of `Basic`, with any user name, or comes as `Bearer`. Pull takes the right to read, push to create, delete to delete.",
        part: "images",
        access: "any",
        scheme: "registry",
        style: "registry",
        response: { status: 200, type: "*/*" },
        errors: [
          "name_invalid",
          "name_unknown",
          "blob_unknown",
          "blob_upload_unknown",
          "manifest_unknown",
          "manifest_blob_unknown",
          "manifest_invalid",
          "digest_invalid",
          "range_invalid",
          "image_in_use",
          "limit_reached",
        ],
        handle: async () => assert(false, "the registry answers by itself"),
        relay: (exchange) => http.relay(exchange),
      }),
    ),
  ];
}
