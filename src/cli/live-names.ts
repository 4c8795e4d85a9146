/** Names of existing resources, for shell completion and interactive prompts. */
import type { Client } from "#client/client.ts";
import { readPlaces } from "./contexts/file.ts";
import type { Kind } from "./name-kinds.ts";

export interface LiveName {
  name: string;
  /** Its id, which is accepted too. */
  id?: string;
  /** Details that distinguish it from the others. */
  about: string;
}

export async function liveNames(client: Client, kind: Kind, signal: AbortSignal): Promise<LiveName[]> {
  switch (kind) {
    case "contexts":
      return Object.entries(readPlaces(process.env).contexts).map(([name, { url }]) => ({ name, about: url }));
    case "orgs": {
      const { organizations } = await client.call("GET /v1/orgs", { signal });
      return organizations.map(({ slug, name }) => ({ name: slug, about: name === slug ? "" : name }));
    }
    case "machines": {
      const params = { org_slug: "personal" };
      const query = { limit: 1000 };
      const { machines } = await client.call("GET /v1/orgs/:org_slug/machines", { params, query, signal });
      return machines.map(({ id, name, app_name, state }) => ({ name, id, about: `${app_name}, ${state}` }));
    }
    case "apps":
      return (await appNames(client, signal)).map((name) => ({ name, about: "" }));
    case "volumes": {
      const lists = (await appNames(client, signal)).map(async (app_name) => {
        const params = { app_name };
        return await client.call("GET /v1/apps/:app_name/volumes", { params, query: { summary: true }, signal });
      });
      return (await Promise.all(lists)).flat().map(({ id, name, size_gb }) => ({
        name: id,
        about: `${name}, ${size_gb} GB`,
      }));
    }
  }
}

async function appNames(client: Client, signal: AbortSignal): Promise<string[]> {
  const { apps } = await client.call("GET /v1/apps", { query: {}, signal });
  return apps.map(({ name }) => name);
}
