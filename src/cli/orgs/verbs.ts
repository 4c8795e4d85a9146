import { listTable, pagesOf } from "../lists.ts";
import { facts } from "../output.ts";
import { firstArgument, textOption, type Verb } from "../verb.ts";

const orgsList: Verb = {
  words: "orgs list",
  summary: "List organizations",
  lists: true,
  examples: ["hangar orgs list"],
  async run(context, input) {
    return await listTable(context, input, pagesOf(context.client, input, "GET /v1/orgs", {}), {
      heads: ["slug", "name", "id"],
      row: ({ slug, name, id }) => [slug, name, id],
    });
  },
};

const orgsCreate: Verb = {
  words: "orgs create",
  summary: "Create an organization",
  arguments: [["<name>", "its name"]],
  options: [["--slug <slug>", "its name in URLs (default: derived from the name)"]],
  examples: ['hangar orgs create "Acme Ltd" --slug acme'],
  async run({ client }, input) {
    const org = await client.call("POST /v1/orgs", {
      body: { name: firstArgument(input), slug: textOption(input, "slug") },
    });
    return { data: org, text: `created ${org.slug}` };
  },
};

const orgsShow: Verb = {
  words: "orgs show",
  summary: "Show an organization",
  arguments: [["<slug>", "the organization"]],
  completes: "orgs",
  examples: ["hangar orgs show personal"],
  async run({ client }, input) {
    const org = await client.call("GET /v1/orgs/:org_slug", { params: { org_slug: firstArgument(input) } });
    return {
      data: org,
      text: facts([
        ["slug", org.slug],
        ["name", org.name],
        ["id", org.id],
        ["created", new Date(org.created_at).toISOString()],
      ]),
    };
  },
};

const orgsDelete: Verb = {
  words: "orgs delete",
  summary: "Delete an organization that has no apps",
  arguments: [["<slug>", "the organization"]],
  completes: "orgs",
  examples: ["hangar orgs delete acme"],
  async run({ client }, input) {
    const slug = firstArgument(input);
    await client.call("DELETE /v1/orgs/:org_slug", { params: { org_slug: slug } });
    return { data: { slug, deleted: true }, text: `deleted ${slug}` };
  },
};

export const VERBS: readonly Verb[] = [orgsList, orgsCreate, orgsShow, orgsDelete];
