import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Client } from "#client/client.ts";
import { testPlatform } from "./platform.ts";
import { until } from "./support.ts";

suite("logs", () => {
  test("logs of an app's machines are merged by time, and followed", async (t) => {
    const platform = await testPlatform(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    const create = async (image: string): Promise<string> => {
      const { body } = await platform.ask("POST /v1/apps/web/machines", { body: { config: { image } } });
      await platform.ask(`GET /v1/apps/web/machines/${body.id}/wait?state=started`);
      return String(body.id);
    };
    const one = await create("one");
    const client = new Client({ base_url: platform.base_url, token: platform.token });
    const reading = new AbortController();
    const params = { app_name: "web" };
    const seen: string[] = [];
    const lines = client.stream<"GET /v1/apps/:app_name/logs", { message: string; machine_id: string }>(
      "GET /v1/apps/:app_name/logs",
      { params, query: { follow: true, tail: 10 }, signal: reading.signal },
    );
    let two = "";
    for await (const { message, machine_id } of lines) {
      seen.push(`${machine_id} ${message}`);
      // A machine that did not exist when the reading began belongs to it as well.
      if (seen.length === 1) two = await create("two");
      else break;
    }
    reading.abort();
    assert.deepEqual(seen, [`${one} started one`, `${two} started two`]);

    const page = await platform.ask("GET /v1/apps/web/logs?tail=1");
    assert.deepEqual(
      page.body.lines.map((line: { machine_id: string }) => line.machine_id),
      [two],
    );
    assert.equal((await platform.ask(`GET /v1/apps/web/machines/${one}/logs?since=1h`)).body.lines.length, 1);
    assert.equal((await platform.ask(`GET /v1/apps/web/machines/${one}/logs?since=tomorrow`)).status, 400);
  });

  test("a search finds text, levels, fields, machines and times, in pages of both orders", async (t) => {
    const platform = await testPlatform(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    const ids: string[] = [];
    for (const image of ["one", "two", "three"]) {
      const body = { name: image, config: { image } };
      const { id } = (await platform.ask("POST /v1/apps/web/machines", { body })).body;
      await platform.ask(`GET /v1/apps/web/machines/${id}/wait?state=started`);
      ids.push(String(id));
    }
    const messages = async (query: string, path = "/v1/apps/web/logs"): Promise<string[]> => {
      const { status, body } = await platform.ask(`GET ${path}?${query}`);
      assert.equal(status, 200, JSON.stringify(body));
      return body.lines.map(({ message }: { message: string }) => message);
    };
    assert.deepEqual(await messages("search=THREE%20started"), ["started three"]);
    assert.deepEqual(await messages("search=nowhere"), []);
    assert.deepEqual(await messages("machine=two"), ["started two"]);
    assert.deepEqual(await messages("limit=5", `/v1/apps/web/machines/${ids[0]}/logs`), ["started one"]);
    assert.deepEqual(await messages("level=error"), []);
    assert.deepEqual(await messages("field=status%3E%3D500"), []);
    assert.deepEqual(await messages("search=started&until=1h"), []);

    // The last second is left out of a search that begins with the oldest.
    await until("they are old enough", async () => (await messages("order=oldest")).length === 3);
    for (const order of ["oldest", "newest"]) {
      const seen: string[] = [];
      let next = "";
      do {
        const { body } = await platform.ask(`GET /v1/apps/web/logs?order=${order}&limit=1${next}`);
        seen.push(...body.lines.map(({ message }: { message: string }) => message));
        next = body.cursor === undefined ? "" : `&cursor=${body.cursor}`;
      } while (next !== "");
      const all = ["started one", "started two", "started three"];
      assert.deepEqual(seen, order === "oldest" ? all : all.toReversed());
    }
  });

  test("a followed search begins after its cursor, and goes on with new lines that match", async (t) => {
    const platform = await testPlatform(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    const create = async (image: string): Promise<void> => {
      const { body } = await platform.ask("POST /v1/apps/web/machines", { body: { config: { image } } });
      await platform.ask(`GET /v1/apps/web/machines/${body.id}/wait?state=started`);
    };
    for (const image of ["one", "two", "three"]) await create(image);
    const first = async () => (await platform.ask("GET /v1/apps/web/logs?order=oldest&limit=1")).body;
    await until("they are old enough", async () => (await first()).cursor !== undefined);
    const { cursor } = await first();
    const client = new Client({ base_url: platform.base_url, token: platform.token });
    const reading = new AbortController();
    const query = { follow: true, search: "t", cursor };
    const lines = client.stream<"GET /v1/apps/:app_name/logs", { message: string }>("GET /v1/apps/:app_name/logs", {
      params: { app_name: "web" },
      query,
      signal: reading.signal,
    });
    const seen: string[] = [];
    for await (const { message } of lines) {
      seen.push(message);
      if (seen.length === 2) for (const image of ["four", "five"]) await create(image);
      if (message.endsWith("five")) break;
    }
    reading.abort();
    assert.deepEqual(seen, ["started two", "started three", "started four", "started five"]);
  });

  test("what a search cannot do is refused with what it can", async (t) => {
    const platform = await testPlatform(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    const cases: [query: string, words: RegExp][] = [
      ["level=loud", /query.level must be/],
      ["field=status", /query.field\[0\] is not a test of a field: name=value/],
      ["field=status%3Emany", /query.field\[0\]/],
      ["since=1h&until=2h", /query.until is not after/],
      ["until=someday", /query.until is not a time/],
      ["cursor=7", /query.cursor is not a cursor/],
      [`order=newest&cursor=o.${"1".repeat(19)}.a.${"1".repeat(19)}.5`, /query.order is not that of the cursor/],
      ["limit=0", /query.limit/],
      ["follow=true&until=1h", /query.until cannot be combined/],
    ];
    for (const [query, words] of cases) {
      const { status, body } = await platform.ask(`GET /v1/apps/web/logs?${query}`);
      assert.equal(status, 400, query);
      assert.match(body.error, words);
    }
    assert.equal((await platform.ask("GET /v1/apps/web/logs?machine=nobody")).status, 404);
  });
});
