import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { bytesText } from "../images/bytes-text.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ago } from "../output.ts";
import { textOption, UsageError, type Verb } from "../verb.ts";

const registryList: Verb = {
  words: "registry list",
  summary: "List repositories and tags that were pushed",
  options: [["--org <slug>", "the organization (default: the token's own, else personal)"]],
  examples: ["hangar registry list"],
  lists: true,
  async run(context, input) {
    const query = { org_slug: textOption(input, "org") };
    const now = systemClock.now();
    return await listTable(context, input, pagesOf(context.client, input, "GET /v1/registry/repositories", { query }), {
      heads: ["repository", "tags", "size", "pushed"],
      row: ({ name, tags, bytes, updated_at }) => [
        name,
        tags.map(({ tag }) => tag).join(", ") || "none",
        bytesText(bytes),
        ago(updated_at, now),
      ],
      none: "nothing was pushed yet; `hangar registry login`, then `docker push`, `podman push` or `skopeo copy`",
    });
  },
};

interface DockerConfig {
  auths?: Record<string, { auth?: string }>;
}

const registryLogin: Verb = {
  words: "registry login",
  summary: "Let docker, podman, skopeo and crane push to this platform",
  details: () =>
    "Writes the address and the token to the file in which these programs keep their logins, as docker login does.",
  options: [["--file <path>", "the file (default: $DOCKER_CONFIG/config.json, else ~/.docker/config.json)"]],
  examples: ["hangar registry login"],
  async run(context, input) {
    const host = new URL(context.client.base_url).host;
    const file =
      textOption(input, "file") ?? join(process.env["DOCKER_CONFIG"] ?? join(homedir(), ".docker"), "config.json");
    // Checks the token before it is written to the file.
    await context.client.call("GET /v1/tokens/current", {});
    const before = readConfig(file);
    const auth = Buffer.from(`hangar:${context.token()}`).toString("base64");
    writeConfig(file, { ...before, auths: { ...before.auths, [host]: { auth } } });
    const text = [
      `the token is in ${file}; push with`,
      `  docker push ${host}/personal/web:1`,
      `  skopeo copy --dest-tls-verify=false oci:web docker://${host}/personal/web:1`,
      "and run it with",
      `  hangar machines run ${host}/personal/web:1 --app web`,
    ].join("\n");
    return { data: { registry: host, file }, text };
  },
};

function readConfig(file: string): DockerConfig {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (thrown) {
    if ((thrown as { code?: string }).code === "ENOENT") return {};
    throw thrown;
  }
  try {
    return JSON.parse(text) as DockerConfig;
  } catch {
    throw new UsageError(`${file} is not JSON; fix it, or name another file with --file`);
  }
}

function writeConfig(file: string, config: DockerConfig): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}.new`;
  writeFileSync(fresh, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
  renameSync(fresh, file);
}

export const VERBS: readonly Verb[] = [registryList, registryLogin];
