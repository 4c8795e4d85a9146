import { createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Context, firstArgument, type Input, textOption, UsageError, type Verb } from "../verb.ts";
import { BASES, type BaseRecipe } from "./base-recipes.ts";
import { bytesText } from "./bytes-text.ts";
import { bootstrap, hostSuite } from "./debian-bootstrap.ts";
import { ociArchive } from "./oci-archive.ts";

const kinds = Object.keys(BASES).join(", ");

export const imagesBase: Verb = {
  words: "images base",
  summary: `Build a base image from Debian packages, without a registry: ${kinds}`,
  arguments: [["<kind>", kinds]],
  options: [
    ["--suite <name>", "Debian's release, for example bookworm (default: this system's, or bookworm)"],
    ["--mirror <url>", "where packages come from, or a sources file (default: this system's, else Debian's)"],
    ["--include <packages>", "more packages, separated by commas"],
    ["--name <image>", "the image's name (default: hangar/KIND:SUITE)"],
    ["--org <slug>", "the organization's images (default: as for images import)"],
    ["-o, --output <file>", "write an OCI archive instead of importing it; no platform is needed"],
  ],
  examples: [
    "hangar images base debian",
    "hangar images base python --include python3-psycopg2 --name psycopg:1",
    "hangar images base node --output node.tar",
  ],
  details: () =>
    `${Object.entries(BASES)
      .map(([name, { summary, packages }]) => `  ${name.padEnd(9)} ${summary} (${packages.join(" ")})`)
      .join("\n")}\n\nThe same packages give the same digest. mmdebstrap makes it on this computer.`,
  async run(context, input) {
    const output = textOption(input, "output");
    return output === undefined ? await imported(context, input) : await written(context, input, output);
  },
};

async function imported(context: Context, input: Input) {
  const { kind, recipe, suite } = wanted(input, await hostSuite());
  const org_slug = textOption(input, "org");
  const name = textOption(input, "name") ?? `hangar/${kind}:${recipe.tag ?? suite}`;
  // The bootstrap takes minutes: fail before it when the platform is unreachable or refuses the token.
  await context.client.call("GET /v1/images", { query: { org_slug, limit: 1 } });
  return await withBase(context, input, async (archive, packages) => {
    context.say(`importing ${name}`);
    const upload = ReadableStream.from(archive);
    const image = await context.client.upload("POST /v1/images/import", { query: { name, org_slug }, upload });
    const text = `made ${image.name} (${image.digest.slice(7, 19)}, ${bytesText(image.bytes)}) of ${packages} packages`;
    return { data: { ...image, packages }, text };
  });
}

/** For a box without a mirror, or another program that reads OCI archives. */
async function written(context: Context, input: Input, file: string) {
  for (const name of ["name", "org"])
    if (textOption(input, name) !== undefined)
      throw new UsageError(`--${name} belongs to an import: leave it out, or leave out --output`);
  const folder = await stat(dirname(file)).catch(() => undefined);
  if (!folder?.isDirectory()) throw new UsageError(`--output ${file}: there is no folder ${dirname(file)}`);
  return await withBase(context, input, async (archive, packages) => {
    const partial = `${file}.part`;
    try {
      await pipeline(archive, createWriteStream(partial));
      await rename(partial, file);
    } finally {
      await rm(partial, { force: true });
    }
    const { size: bytes } = await stat(file);
    const text = `wrote ${file} (${bytesText(bytes)}) of ${packages} packages; next: hangar images import NAME ${file}`;
    return { data: { file, bytes, packages }, text };
  });
}

function wanted(input: Input, own: string | undefined): { kind: string; recipe: BaseRecipe; suite: string } {
  const kind = firstArgument(input);
  const recipe = BASES[kind];
  if (!recipe) throw new UsageError(`there is no base ${kind}: ${kinds}`);
  return { kind, recipe, suite: textOption(input, "suite") ?? own ?? "bookworm" };
}

/** Makes a base, and removes its files when it is used. */
async function withBase<T>(
  context: Context,
  input: Input,
  use: (archive: AsyncIterable<Uint8Array>, packages: number) => Promise<T>,
): Promise<T> {
  const { recipe, suite } = wanted(input, await hostSuite());
  const include = (textOption(input, "include") ?? "").split(",").filter((name) => name !== "");
  const made = await bootstrap(context, recipe, { suite, mirror: textOption(input, "mirror"), include });
  try {
    return await use(await ociArchive(made.file, recipe.config), made.packages);
  } finally {
    await rm(made.folder, { recursive: true, force: true });
  }
}
