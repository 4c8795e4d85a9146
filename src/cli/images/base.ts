import { rm } from "node:fs/promises";
import { type Context, firstArgument, type Input, textOption, UsageError, type Verb } from "../verb.ts";
import { BASES } from "./base-recipes.ts";
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
  ],
  examples: ["hangar images base debian", "hangar images base python --include python3-psycopg2 --name psycopg:1"],
  details: () =>
    `${Object.entries(BASES)
      .map(([name, { summary, packages }]) => `  ${name.padEnd(9)} ${summary} (${packages.join(" ")})`)
      .join("\n")}\n\nThe same packages give the same digest. mmdebstrap makes it on this computer.`,
  async run(context, input) {
    const { image, packages } = await makeBase(context, input);
    const text = `made ${image.name} (${image.digest.slice(7, 19)}, ${bytesText(image.bytes)}) of ${packages} packages`;
    return { data: { ...image, packages }, text };
  },
};

/** Makes a base and imports it. */
async function makeBase(context: Context, input: Input) {
  const kind = firstArgument(input);
  const recipe = BASES[kind];
  if (!recipe) throw new UsageError(`there is no base ${kind}: ${kinds}`);
  const suite = textOption(input, "suite") ?? (await hostSuite()) ?? "bookworm";
  const more = (textOption(input, "include") ?? "").split(",").filter((name) => name !== "");
  const name = textOption(input, "name") ?? `hangar/${kind}:${recipe.tag ?? suite}`;
  // The bootstrap takes minutes: fail before it when the platform is unreachable or refuses the token.
  await context.client.call("GET /v1/images", { query: { org_slug: textOption(input, "org"), limit: 1 } });
  const made = await bootstrap(context, recipe, { suite, mirror: textOption(input, "mirror"), include: more });
  try {
    context.say(`importing ${name}`);
    const archive = await ociArchive(made.file, recipe.config);
    const image = await context.client.upload("POST /v1/images/import", {
      query: { name, org_slug: textOption(input, "org") },
      upload: ReadableStream.from(archive),
    });
    return { image, packages: made.packages };
  } finally {
    await rm(made.folder, { recursive: true, force: true });
  }
}
