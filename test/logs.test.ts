import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Client } from "#client/client.ts";
import { testPlatform } from "./platform.ts";

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
});
