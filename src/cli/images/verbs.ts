import type { Image } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { systemClock } from "#core/clock.ts";
import { CATALOGUE, type ErrorCode } from "#core/error-catalogue.ts";
import type { ErrorBody } from "#core/errors.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ago, facts } from "../output.ts";
import { type Context, firstArgument, type Input, neededApp, textOption, type Verb } from "../verb.ts";
import { imagesBase } from "./base.ts";
import { bytesText } from "./bytes-text.ts";
import { packageOf } from "./pack.ts";

const ORG: readonly [string, string] = [
  "--org <slug>",
  "the organization's images (default: the token's own; with a full-access token the platform's, which all may use)",
];
const IMAGE: readonly [string, string] = ["<image>", "name and tag: web:1"];

const short = (digest: string): string => digest.slice("sha256:".length, "sha256:".length + 12);

const imagesList: Verb = {
  words: "images list",
  summary: "List images",
  options: [ORG],
  lists: true,
  examples: ["hangar images list"],
  async run(context, input) {
    const pages = pagesOf(context.client, input, "GET /v1/images", { query: { org_slug: textOption(input, "org") } });
    return await listTable(context, input, pages, {
      heads: ["name", "digest", "size", "owner", "from", "machines", "used"],
      row: (image) => [
        image.name,
        short(image.digest),
        image.complete ? bytesText(image.bytes) : `${bytesText(image.bytes)} of more`,
        image.owner,
        image.source,
        String(image.machines),
        ago(image.used_at, systemClock.now()),
      ],
      none: "no images yet; `hangar images import NAME:TAG PATH` brings one, or run hangar/hello",
    });
  },
};

const imagesShow: Verb = {
  words: "images show",
  summary: "Show an image: its config, layers, and the machines that use it",
  arguments: [IMAGE],
  options: [ORG],
  examples: ["hangar images show hangar/hello"],
  async run({ client }, input) {
    const query = { image: firstArgument(input), org_slug: textOption(input, "org") };
    const image = await client.call("GET /v1/images/show", { query });
    const { config } = image;
    const words = (list: readonly string[]): string => (list.length === 0 ? "none" : JSON.stringify(list));
    return {
      data: image,
      text: facts([
        ["name", image.name],
        ["digest", image.digest],
        ["owner", image.owner],
        ["from", image.source],
        ["for", `linux/${image.architecture}`],
        ["size", bytesText(image.bytes)],
        ["entrypoint", words(config.entrypoint)],
        ["cmd", words(config.cmd)],
        ["user", config.user || "root"],
        ["directory", config.working_dir || "/"],
        ["stop signal", config.stop_signal ?? "the machine's"],
        ["ports", image.exposed_ports.join(", ") || "none"],
        ...Object.entries(config.env).map(([name, value]): [string, string] => ["env", `${name}=${value}`]),
        ...Object.entries(image.labels).map(([name, value]): [string, string] => ["label", `${name}=${value}`]),
        ...image.layer_list.map(({ diff_id, bytes, entries, here }): [string, string] => [
          "layer",
          `${short(diff_id)}  ${here ? `${bytesText(bytes)}, ${entries} entries` : "not here yet"}`,
        ]),
        ["machines", image.machine_ids.join(", ") || "none"],
      ]),
    };
  },
};

const imagesResolve: Verb = {
  words: "images resolve",
  summary: "Resolve an image name to its digest, as a reference for `config.image`",
  arguments: [IMAGE],
  options: [["-a, --app <app>", "the app whose machines would boot it"]],
  examples: ["hangar images resolve hangar/hello --app web"],
  async run({ client }, input) {
    const params = { app_name: neededApp(input) };
    const query = { image: firstArgument(input) };
    const found = await client.call("GET /v1/apps/:app_name/images/resolve", { params, query });
    return { data: found, text: found.reference };
  },
};

const imagesImport: Verb = {
  words: "images import",
  summary: "Import an image from a root file system, an OCI layout, or an OCI or docker archive",
  arguments: [IMAGE, ["<path>", "a folder, or a tar file (plain, gzip or zstd)"]],
  options: [ORG],
  examples: ["mkdir -p rootfs/bin && cp /bin/busybox rootfs/bin/sh && hangar images import tiny:1 rootfs"],
  async run({ client, say }, input) {
    const [name = "", path = ""] = input.args;
    const { kind, chunks } = await packageOf(path, (what) =>
      say(`left out, neither a file, a folder nor a link: ${what}`),
    );
    say(`sending ${kind} ${path}`);
    const image = await client.upload("POST /v1/images/import", {
      query: { name, org_slug: textOption(input, "org") },
      upload: ReadableStream.from(chunks),
    });
    return { data: image, text: `imported ${image.name} (${short(image.digest)}, ${bytesText(image.bytes)})` };
  },
};

interface Progress {
  layer?: string;
  state: string;
  done_bytes?: number;
  total_bytes?: number;
  image?: Image;
  error?: string;
  status?: ErrorCode;
}

const imagesPull: Verb = {
  words: "images pull",
  summary: "Pull an image from its registry, also when an older one of that name exists",
  arguments: [IMAGE],
  options: [ORG],
  examples: ["hangar images pull hangar/hello"],
  async run(context, input) {
    const image = await pulled(context, input);
    return { data: image, text: `${image.name} is ${image.digest} (${bytesText(image.bytes)})` };
  },
};

async function pulled({ client, say }: Context, input: Input): Promise<Image> {
  const body = { image: firstArgument(input), org_slug: textOption(input, "org") };
  const progress = client.stream<"POST /v1/images/pull", Progress>("POST /v1/images/pull", { body });
  const printed = new Map<string, string>();
  for await (const update of progress) {
    // The response already has status 200; a later error is the last update of the stream.
    if (update.error !== undefined) throw failureOf(update);
    if (update.image) return update.image;
    if (update.layer === undefined) continue;
    const line = progressText(update);
    if (printed.get(update.layer) !== line) say(line);
    printed.set(update.layer, line);
  }
  throw new ClientError(0, { error: "the pull was interrupted", hint: "try again; the pull resumes where it stopped" });
}

function failureOf(update: Progress): ClientError {
  return new ClientError(update.status ? CATALOGUE[update.status].http : 0, {
    ...update,
  } as unknown as Partial<ErrorBody>);
}

/** One line for every tenth of a layer, so that the log stays short. */
function progressText({ layer = "", state, done_bytes, total_bytes }: Progress): string {
  const name = short(layer);
  if (state !== "downloading" || !total_bytes || done_bytes === undefined) return `${name}  ${state}`;
  return `${name}  downloading ${Math.floor((done_bytes / total_bytes) * 10) * 10} % of ${bytesText(total_bytes)}`;
}

const imagesRemove: Verb = {
  words: "images rm",
  summary: "Remove an image and the layers that only it uses",
  arguments: [IMAGE],
  options: [ORG],
  examples: ["hangar images rm tiny:1"],
  async run({ client }, input) {
    const image = firstArgument(input);
    await client.call("DELETE /v1/images", { query: { image, org_slug: textOption(input, "org") } });
    return { data: { image, removed: true }, text: `removed ${image}` };
  },
};

const imagesGc: Verb = {
  words: "images gc",
  summary: "Remove unused images and layers (also runs every hour)",
  options: [
    ["--dry-run", "only list what would be deleted"],
    ["--all", "also recently used or replaced images, if no machine and no release needs them"],
  ],
  examples: ["hangar images gc --dry-run"],
  async run({ client }, input) {
    const body = { dry_run: input.options["dryRun"] === true, all: input.options["all"] === true };
    const found = await client.call("POST /v1/images/gc", { body });
    const lines = [
      ...found.images.map(({ name, digest }) => `image  ${name} (${short(digest)})`),
      ...found.layers.map(({ diff_id, bytes }) => `layer  ${short(diff_id)}, ${bytesText(bytes)}`),
      `${found.dry_run ? "would free" : "freed"} ${bytesText(found.bytes)}`,
    ];
    return { data: found, text: lines.join("\n") };
  },
};

export const VERBS: readonly Verb[] = [
  imagesList,
  imagesImport,
  imagesBase,
  imagesPull,
  imagesShow,
  imagesResolve,
  imagesRemove,
  imagesGc,
];
