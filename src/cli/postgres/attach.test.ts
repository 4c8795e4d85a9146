import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { roleOf } from "./attach.ts";

suite("roles of apps in a PostgreSQL", () => {
  test("the role of an app has the app's name, but never that of a role of PostgreSQL itself", () => {
    const expected = { "web-shop": "web_shop", postgres: "app_postgres", "pg-monitor": "app_pg_monitor" };
    for (const [app, role] of Object.entries(expected)) assert.equal(roleOf(app), role);
  });
});
