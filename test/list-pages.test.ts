/** Every list of the API comes in pages: found from the table of routes, walked page by page. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import type { Row } from "#http/route.ts";
import { type Furnished, furnished, type Item } from "./furnished.ts";
import type { Answer, TestPlatform } from "./platform.ts";

interface Schema {
  type?: string;
  items?: Schema;
  properties?: Record<string, Schema>;
}

/** Answers with a list in them that are not lists of resources. */
const NOT_LISTS: Record<string, string> = {
  "/v1/orgs/:org_slug/alerts/receivers": "one document, and the receivers in it",
  "/v1/orgs/:org_slug/alerts/notifications": "the newest messages, which are forgotten after a week",
  "/v1/tokens/current": "the tokens that the request itself carries",
  "/v1/images/show": "the layers of one image",
  "/v1/apps/:app_name/machines/:machine_id/logs": "the newest lines, by `tail` and `since`, or a stream",
  "/v1/apps/:app_name/logs": "the newest lines, by `tail` and `since`, or a stream",
  "/v1/apps/:app_name/runs/:run_id/logs": "the newest lines, by `tail`, or a stream",
  "/v1/apps/:app_name/status": "the state of one app, with the failing machines (`status_failures` at most)",
  "/v1/apps/:app_name/requests":
    "the newest failed and slow requests that a process remembers (`requests_kept` at most)",
  "/v1/sprites": "pages of the Sprites API: `max_results` and `continuation_token`",
  "/v1/sprites/:sprite_name/exec": "the commands that run in one sprite (`sprite_commands` at most)",
  "/v1/sprites/:sprite_name/fs/list": "what is in one folder, as the Sprites API has it (`file_entries` at most)",
  "/v1/gateway/list": "two lists for a program in a machine: its connectors (500 at most) and the providers",
  "/oidc/:org_slug/.well-known/jwks.json": "a document of a standard, read whole by every verifier",
};

const isObjects = ({ type, items }: Schema): boolean => type === "array" && items?.type === "object";

/** A GET that answers objects in an array, alone or as a field, and is not about one thing. */
function isList({ method, path, style, response }: Row): boolean {
  const schema = response.schema as Schema | undefined;
  if (method !== "GET" || style === "prometheus" || !schema || /:\w+$/.test(path)) return false;
  return schema.type === "array" || Object.values(schema.properties ?? {}).some(isObjects);
}

suite("pagination of every list", () => {
  let platform: Furnished;
  const ends: (() => Promise<void>)[] = [];
  before(async () => {
    platform = await furnished({ after: (end) => void ends.push(end as () => Promise<void>) });
  });
  after(async () => {
    for (const end of ends) await end();
  });

  test("every list accepts limit and cursor", () => {
    const { rows } = platform;
    const lists = rows.filter((row) => isList(row));
    const without = lists.filter(({ pages, path }) => !pages && NOT_LISTS[path] === undefined).map(({ path }) => path);
    assert.deepEqual(without, [], "these lists have no `pages` (http/list-page.ts)");
    const stale = Object.keys(NOT_LISTS).filter((path) => !lists.some((row) => row.path === path && !row.pages));
    assert.deepEqual(stale, [], "these are no lists, or have pages");
  });

  test("the pages of every list add up to the whole list, in order", async () => {
    for (const row of platform.rows.filter(({ pages }) => pages)) {
      const path = platform.url(row);
      const whole = await walk(platform, row, path, LIMITS.page_items);
      const least = FEW[row.path]?.items ?? 3;
      assert.ok(whole.length >= least, `${row.path} lists ${whole.length}, at least ${least} are there`);
      for (const limit of [1, 2]) {
        assert.deepEqual(await walk(platform, row, path, limit), whole, `${row.path} by ${limit}`);
      }
    }
  });

  test("an invalid cursor or limit is 400 with what is allowed", async () => {
    for (const row of platform.rows.filter(({ pages }) => pages)) {
      for (const bad of ["cursor=odd", "cursor=%00", "limit=0", `limit=${LIMITS.page_items + 1}`, "limit=x"]) {
        const { status, body } = await platform.ask(`GET ${withQuery(platform.url(row), bad)}`);
        assert.equal(status, 400, `${row.path}?${bad}`);
        const [name = ""] = bad.split("=");
        assert.equal(body.details[0].path, `query.${name}`, row.path);
      }
    }
  });

  test("items added or deleted between two pages hide no others", async () => {
    const { ask } = platform;
    const steady = async (path: string, idOf: (item: Item) => string, change: (gone: Item) => Promise<void>) => {
      const all = itemsOf((await ask(`GET ${withQuery(path, "limit=1000")}`)).body).map(idOf);
      const first = await ask(`GET ${withQuery(path, "limit=2")}`);
      const [gone] = itemsOf(first.body);
      assert.ok(gone);
      await change(gone);
      const cursor = headerOf(first, "svc-next-cursor") ?? "";
      const rest = await ask(`GET ${withQuery(path, `limit=1000&cursor=${cursor}`)}`);
      const seen = [...itemsOf(first.body), ...itemsOf(rest.body)].map(idOf);
      assert.deepEqual([seen.filter((id) => all.includes(id)), seen.length - new Set(seen).size], [all, 0], path);
    };
    const idOf = ({ id }: Item): string => String(id);
    await steady("/v1/apps/web/machines", idOf, async ({ id }) => {
      await ask(`DELETE /v1/apps/web/machines/${id}?force=true`);
      await ask("POST /v1/apps/web/machines", { body: { config: { image: "web:1" } } });
    });
    await steady("/v1/apps?org_slug=acme", idOf, async ({ name }) => {
      await ask(`DELETE /v1/apps/${name}`);
      await ask("POST /v1/apps", { body: { app_name: "a-first", org_slug: "acme" } });
    });
    await steady("/v1/orgs/acme/tokens", idOf, async () => {
      await ask("POST /v1/orgs/acme/tokens", { body: { kind: "org" } });
    });
  });
});

/** Lists that this house cannot fill, with what it has of them. */
const FEW: Record<string, { items: number; why: string }> = {
  "/v1/apps/:app_name/machines/:machine_id/ps": { items: 1, why: "a simulated machine has one process" },
  "/v1/orgs/:org_slug/db_nodes": { items: 0, why: "a node is a machine whose metrics say so" },
  "/v1/apps/:app_name/services": { items: 0, why: "a published port is one of the box, and others may have it" },
  "/v1/orgs/:org_slug/alerts": { items: 0, why: "nothing of it is wrong" },
  "/v1/images": { items: 0, why: "the sim driver has no images" },
  "/v1/orgs/:org_slug/oidc/keys": { items: 2, why: "one of each algorithm" },
};

const headerOf = ({ headers }: Answer, name: string): string | undefined => headers[name] as string | undefined;
const withQuery = (path: string, query: string): string => `${path}${path.includes("?") ? "&" : "?"}${query}`;

/** The list in an answer: the answer itself, or its one field of objects. */
function itemsOf(body: unknown): Item[] {
  if (Array.isArray(body)) return body as Item[];
  const lists = Object.values(body as Item).filter((value) => Array.isArray(value)) as Item[][];
  return lists.find((list) => list.length > 0 && typeof list[0] === "object") ?? [];
}

/** All items of a list, asked for by `limit`, following the links. */
async function walk(platform: TestPlatform, row: Row, path: string, limit: number): Promise<Item[]> {
  const found: Item[] = [];
  for (let next: string | undefined = withQuery(path, `limit=${limit}`); next !== undefined; ) {
    const answer: Answer = await platform.ask(`GET ${next}`);
    assert.equal(answer.status, 200, `${next}: ${answer.text}`);
    const items = row.pages?.items ? (answer.body[row.pages.items] as Item[]) : (answer.body as Item[]);
    assert.ok(items.length <= limit, row.path);
    found.push(...items);
    const link = /^<(.+)>; rel="next"$/.exec(headerOf(answer, "link") ?? "")?.[1];
    const cursor = headerOf(answer, "svc-next-cursor");
    assert.deepEqual(
      [link !== undefined, link && new URL(link, "http://x").searchParams.get("cursor")],
      [cursor !== undefined, cursor],
    );
    if (!Array.isArray(answer.body)) assert.equal(answer.body.next_cursor, cursor, row.path);
    next = link;
  }
  return found;
}
