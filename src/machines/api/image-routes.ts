import { principalOf } from "#auth/guard.ts";
import { assert } from "#core/assert.ts";
import { isoTime } from "#core/clock.ts";
import { ApiError, errorBody } from "#core/errors.ts";
import { type Admitted, appOf, type Caller, orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import type { StreamItem } from "#http/stream.ts";
import { type ImageCatalog, type ImageSummary, PLATFORM, type PullProgress } from "../runtime/image-source.ts";
import { checkImageName, pinnedReference } from "../runtime/images.ts";
import * as schema from "./image-schema.ts";
import type { RouteParts } from "./routing.ts";

interface RouteCall extends Admitted {
  caller: Caller;
}

/** A full-access token without an organization acts for the platform. */
function ownerOf({ caller, ...admitted }: RouteCall, org_slug: string | undefined): string {
  return org_slug === undefined && principalOf(caller).kind === "full" ? PLATFORM : orgOf(admitted).id;
}

const shown = <Summary extends ImageSummary>({ created_at, used_at, ...image }: Summary) => ({
  ...image,
  created_at: isoTime(created_at),
  used_at: isoTime(used_at),
});

const IMAGE_ERRORS = [
  "image_not_found",
  "image_refused",
  "image_elsewhere",
  "address_refused",
  "registry_unreachable",
  "limit_reached",
  "storage_full",
] as const;

export function imageRoutes(images: ImageCatalog): Row[] {
  return [...readRoutes(images), ...bringRoutes(images), ...removeRoutes(images)];
}

/** Image names are resolved per app, because they resolve per organization. */
export function imageResolveRoutes(
  { apps, machines }: Pick<RouteParts, "apps" | "machines">,
  images: Pick<ImageCatalog, "show">,
): Row[] {
  return [
    route("GET /v1/apps/:app_name/images/resolve", {
      summary: "Resolve an image name to the digest a machine of the app would boot",
      description: "Resolves as creating a machine does: local images first, else the registry.",
      part: "images",
      access: "create app",
      query: schema.ResolveQuery,
      response: { status: 200, schema: schema.ResolvedImage },
      errors: ["image_refused", "image_elsewhere", "address_refused", "registry_unreachable"],
      async handle({ query: { image }, signal, ...admitted }) {
        checkImageName(image, "query.image");
        const { org_id } = await apps.get(appOf(admitted).name);
        const ref = await machines.resolveImage(image, org_id, signal).catch(missing);
        const here = await images.show(image, org_id).catch(() => undefined);
        const healthcheck = here?.digest === ref.digest ? here.config.healthcheck : undefined;
        return {
          image,
          digest: ref.digest,
          reference: pinnedReference(image, ref),
          ...(healthcheck ? { healthcheck } : {}),
        };
      },
    }),
  ];
}

/**
 * A missing image is 404 here, because it is the requested resource; in a machine's config it is a validation error.
 */
function missing(thrown: unknown): never {
  if (!(thrown instanceof ApiError) || thrown.code !== "image_not_found") throw thrown;
  throw new ApiError("not_found", thrown.message, { ...thrown.extras, cause: thrown });
}

function readRoutes(images: ImageCatalog): Row[] {
  return [
    route("GET /v1/images", {
      summary: "List an organization's images and the platform's",
      part: "images",
      access: "read org",
      query: schema.OrgQuery,
      pages: inPages("images", ["text", "text", "text"]),
      response: { status: 200, schema: schema.ImageList },
      async handle({ query, page, ...call }) {
        const all = await images.list(ownerOf(call, query.org_slug));
        return { images: page.of(all, ({ name, owner, digest }) => [name, owner, digest]).map(shown) };
      },
    }),
    route("GET /v1/images/show", {
      summary: "Show an image: its config, its layers, the machines that boot from it",
      part: "images",
      access: "read org",
      query: schema.ImageQuery,
      response: { status: 200, schema: schema.ImageDetailsResponse },
      errors: ["image_not_found", "image_refused"],
      async handle({ query, ...call }) {
        const { config, labels, exposed_ports, layer_list, machine_ids, ...image } = await images.show(
          query.image,
          ownerOf(call, query.org_slug),
        );
        return {
          ...shown(image),
          config: { ...config, entrypoint: [...config.entrypoint], cmd: [...config.cmd], env: { ...config.env } },
          labels: { ...labels },
          exposed_ports: [...exposed_ports],
          layer_list: [...layer_list],
          machine_ids: [...machine_ids],
        };
      },
    }),
  ];
}

function bringRoutes(images: ImageCatalog): Row[] {
  return [
    route("POST /v1/images/import", {
      summary: "Import an image: a tar of a root file system, an OCI layout or a docker archive",
      description: "The body is the tar itself, plain or compressed with gzip or zstd.",
      part: "images",
      access: "create org",
      query: schema.ImportQuery,
      upload: "application/x-tar",
      response: { status: 201, schema: schema.ImageResponse },
      errors: IMAGE_ERRORS,
      async handle(call) {
        const { query, upload, signal } = call;
        return shown(await images.import(query.name, upload, ownerOf(call, query.org_slug), signal));
      },
    }),
    route("POST /v1/images/pull", {
      summary: "Pull an image; as a stream, with the progress of each layer",
      description: "Resolves the name at the registry, even if the image is already stored here.",
      part: "images",
      access: "create org",
      body: schema.PullImage,
      response: { status: 200, schema: schema.ImageResponse },
      errors: IMAGE_ERRORS,
      async handle(call) {
        const { body, signal } = call;
        let last: ImageSummary | undefined;
        for await (const { image } of images.pull(body.image, ownerOf(call, body.org_slug), signal))
          last = image ?? last;
        assert(last, "a pull ends with the image");
        return shown(last);
      },
      stream: (call) =>
        items(images.pull(call.body.image, ownerOf(call, call.body.org_slug), call.signal), call.request_id),
    }),
  ];
}

async function* items(
  progress: AsyncIterable<PullProgress>,
  request_id: string,
): AsyncGenerator<readonly StreamItem[]> {
  try {
    for await (const { image, ...rest } of progress) yield [{ data: image ? { ...rest, image: shown(image) } : rest }];
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown;
    // The response has begun, so an error can only be sent as its last event.
    yield [{ event: "error", data: errorBody(thrown, request_id) }];
  }
}

function removeRoutes(images: ImageCatalog): Row[] {
  return [
    route("DELETE /v1/images", {
      summary: "Remove an image's name, and the layers that only it used",
      part: "images",
      access: "delete org",
      query: schema.ImageQuery,
      response: { status: 204 },
      errors: ["image_not_found", "image_in_use"],
      async handle({ query, ...call }) {
        await images.remove(query.image, ownerOf(call, query.org_slug));
      },
    }),
    route("POST /v1/images/gc", {
      summary: "Remove unused images and layers",
      description: "Also runs every hour; a pulled image is removed a week after its last use.",
      part: "images",
      access: "delete account",
      body: schema.CollectInput,
      response: { status: 200, schema: schema.CollectedResponse },
      async handle({ body }) {
        const found = await images.collect({ dry_run: body.dry_run ?? false, all: body.all ?? false });
        return { ...found, images: [...found.images], layers: [...found.layers] };
      },
    }),
  ];
}
