import type { Context, Verb } from "./verb.ts";

/** The words that may come next after `typed`, whose last one is begun or empty. */
export async function complete(context: Context, verbs: readonly Verb[], typed: readonly string[]): Promise<string[]> {
  const before = typed.slice(0, -1).filter((word) => !word.startsWith("-"));
  const begun = typed.at(-1) ?? "";
  const candidates = begun.startsWith("-")
    ? options(verbs, before)
    : [...nextWords(verbs, before), ...(await liveNames(context, verbs, before))];
  return [...new Set(candidates)].filter((word) => word.startsWith(begun)).sort();
}

function verbOf(verbs: readonly Verb[], before: readonly string[]): Verb | undefined {
  return verbs.find(({ words }) => words === before.slice(0, words.split(" ").length).join(" "));
}

function nextWords(verbs: readonly Verb[], before: readonly string[]): string[] {
  return verbs.flatMap(({ words }) => {
    const all = words.split(" ");
    const next = all[before.length];
    return next && all.slice(0, before.length).join(" ") === before.join(" ") ? [next] : [];
  });
}

function options(verbs: readonly Verb[], before: readonly string[]): string[] {
  const own = verbOf(verbs, before)?.options ?? [];
  return [
    ...own.flatMap(([flags]) => flags.match(/--[\w-]+/g) ?? []),
    "--json",
    "--help",
    "--url",
    "--data-dir",
    "--show-request",
  ];
}

async function liveNames({ client }: Context, verbs: readonly Verb[], before: readonly string[]): Promise<string[]> {
  const verb = verbOf(verbs, before);
  if (!verb?.completes || before.length !== verb.words.split(" ").length) return [];
  const signal = AbortSignal.timeout(1000);
  // A platform that does not answer must not make the shell hang or print.
  if (verb.completes === "orgs") {
    const { organizations } = await client.call("GET /v1/orgs", { signal }).catch(() => ({ organizations: [] }));
    return organizations.map((org) => org.slug);
  }
  if (verb.completes === "machines") {
    const params = { org_slug: "personal" };
    const { machines } = await client
      .call("GET /v1/orgs/:org_slug/machines", { params, query: { limit: 1000 }, signal })
      .catch(() => ({ machines: [] }));
    return machines.flatMap(({ id, name }) => [id, name]);
  }
  const { apps } = await client.call("GET /v1/apps", { query: {}, signal }).catch(() => ({ apps: [] }));
  if (verb.completes !== "volumes") return apps.map((app) => app.name);
  const lists = apps.map(({ name }) =>
    client.call("GET /v1/apps/:app_name/volumes", { params: { app_name: name }, query: { summary: true }, signal }),
  );
  return (await Promise.all(lists).catch(() => [])).flat().map(({ id }) => id);
}
