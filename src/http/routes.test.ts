import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "./route.ts";
import { platformRoutes } from "./routes.ts";

test("/openapi.json and /docs are built once, however often they are requested", async () => {
  const facts = { base_url: "http://one.example" };
  let made = 0;
  const rows = (): readonly Row[] => {
    made++;
    return all;
  };
  // The facts, the dashboard and the readiness are not used here.
  const all = platformRoutes({ facts, rows } as unknown as Parameters<typeof platformRoutes>[0]);
  const ask = async (path: string): Promise<unknown> =>
    await all.find((row) => row.path === path)?.handle({} as Parameters<Row["handle"]>[0]);
  for (const path of ["/docs", "/openapi.json"]) {
    const [before, first] = [made, await ask(path)];
    for (let again = 0; again < 20; again++) assert.equal(await ask(path), first);
    assert.equal(made - before, 1, path);
  }
  facts.base_url = "http://two.example";
  assert.match(String(await ask("/openapi.json")), /two\.example/, "the address is known only after the start");
});
