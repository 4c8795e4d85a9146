import assert from "node:assert/strict";
import { test } from "node:test";
import { clientOf } from "../../client/fixtures.ts";
import type { Context } from "../verb.ts";
import { newestDefinition } from "./definition.ts";

test("the newest definition is that of the newest complete release, unless another program recorded it", async (t) => {
  const own = { image: "web:1", strategy: "rolling", groups: [] };
  for (const [definition, wanted] of [
    [own, own],
    [{}, undefined],
    [null, undefined],
    [{ groups: "web" }, undefined],
  ]) {
    const client = await clientOf(t, ({ url = "" }, response) => {
      const releases = [
        { version: 3, status: "failed" },
        { version: 2, status: "complete" },
      ];
      const body = url.endsWith("/2") ? { definition } : { releases };
      response.setHeader("content-type", "application/json").end(JSON.stringify(body));
    });
    assert.deepEqual(await newestDefinition({ client } as unknown as Context, "web"), wanted);
  }
});
