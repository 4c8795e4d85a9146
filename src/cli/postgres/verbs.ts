import type { MachineConfig } from "#client/api.ts";
import { listTable, pagesOf } from "../lists.ts";
import { bytesText, table } from "../output.ts";
import { textOption, type Verb } from "../verb.ts";
import { databasesOf, postgresAttach, postgresDetach } from "./attach.ts";
import { postgresBackup, postgresBackups, postgresRestore } from "./backups.ts";
import { postgresConnect } from "./connect.ts";
import { postgresCreate } from "./create.ts";
import { isPostgres } from "./find.ts";

const postgresList: Verb = {
  words: "postgres list",
  summary: "List databases created with `hangar postgres create`",
  options: [["--org <slug>", "the organization (default: personal)"]],
  lists: true,
  examples: ["hangar postgres list"],
  async run(context, input) {
    const params = { org_slug: textOption(input, "org") ?? "personal" };
    const pages = pagesOf(context.client, input, "GET /v1/orgs/:org_slug/machines", { params });
    return await listTable(context, input, databases(pages), {
      heads: ["app", "machine", "state", "image"],
      row: ({ app_name, id, state, config }) => [app_name, id, state, config.image],
      none: "no databases; `hangar postgres create <name>` makes one",
    });
  },
};

interface Listed {
  id: string;
  app_name: string;
  state: string;
  config: MachineConfig;
}

async function* databases(pages: AsyncIterable<object[]>): AsyncGenerator<Listed[]> {
  for await (const page of pages) yield (page as Listed[]).filter(({ config }) => isPostgres(config));
}

const postgresShow: Verb = {
  words: "postgres show",
  summary: "Show the databases of a server, and the apps attached to them",
  arguments: [["<postgres>", "an app created with `hangar postgres create`"]],
  examples: ["hangar postgres show ledger"],
  async run(context, input) {
    const found = await databasesOf(context, input.args[0] ?? "");
    const rows = found.map(({ database, owner, app, variable, bytes }) => [
      database,
      owner,
      app === undefined ? "-" : `${app} (${variable})`,
      bytesText(bytes),
    ]);
    return { data: found, text: table(["database", "owner", "attached to", "size"], rows) };
  },
};

export const VERBS: readonly Verb[] = [
  postgresCreate,
  postgresList,
  postgresShow,
  postgresAttach,
  postgresDetach,
  postgresConnect,
  postgresBackup,
  postgresBackups,
  postgresRestore,
];
