import { writeFileSync } from "node:fs";
import { count } from "#core/words.ts";
import type { Document } from "../apply/document.ts";
import { textOption, UsageError, type Verb } from "../verb.ts";
import { FLY_URL, FlyApi } from "./fly-api.ts";
import { importedApp, readFlyApp, rowsOf } from "./fly-app.ts";

const importFly: Verb = {
  words: "import fly",
  summary: "Write apps of Fly.io as a desired-state file for `hangar apply`",
  arguments: [["[apps...]", "only these apps (default: all of the organization there)"]],
  options: [
    ["--from <url>", `the API to read (default: FLY_FLAPS_BASE_URL, or ${FLY_URL})`],
    ["--from-org <slug>", "the organization there (default: personal)"],
    ["--org <slug>", "the organization here (default: personal)"],
    ["--region <code>", "one region for everything (default: regions keep their names)"],
    ["-o, --output <file>", "into this file"],
  ],
  details: () =>
    "The token is read from FLY_API_TOKEN. Nothing is changed there. What cannot be carried over is said, line by line.",
  examples: ["hangar import fly machinery -o moved.json", "hangar import fly --from-org personal"],
  async run({ say }, input) {
    const { env } = process;
    const token = env["FLY_API_TOKEN"] || env["FLY_ACCESS_TOKEN"];
    if (!token) throw new UsageError("there is no token: set FLY_API_TOKEN (fly tokens create readonly)");
    const api = new FlyApi(textOption(input, "from") ?? (env["FLY_FLAPS_BASE_URL"] || FLY_URL), token);
    const target = { org_slug: textOption(input, "org") ?? "personal", region: textOption(input, "region") };
    const names = input.rest.length > 0 ? input.rest : await appNames(api, textOption(input, "fromOrg") ?? "personal");
    const data: Document = { hangar: 1, apps: [] };
    for (const name of names) {
      const found = (await readFlyApp(api, name)) ?? noApp(name);
      const { document, notes } = importedApp(found, target);
      data.apps.push(document);
      for (const text of notes) say(text);
    }
    const text = JSON.stringify(data, undefined, 2);
    const file = textOption(input, "output");
    if (!file) return { data, text };
    // Values in `env` may be confidential.
    writeFileSync(file, `${text}\n`, { mode: 0o600 });
    return { data, text: `wrote ${count(names.length, "app")} to ${file}; next: hangar apply ${file}` };
  },
};

async function appNames(api: FlyApi, org_slug: string): Promise<string[]> {
  const apps = rowsOf(await api.find(`/v1/apps?org_slug=${encodeURIComponent(org_slug)}`), "apps");
  return apps.map(({ name }) => String(name));
}

function noApp(name: string): never {
  throw new UsageError(`there is no app ${name} that this token may see`);
}

export const VERBS: readonly Verb[] = [importFly];
