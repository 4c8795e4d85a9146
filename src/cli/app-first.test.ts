import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { namesAppFirst, withApp } from "./app-first.ts";
import { UsageError } from "./verb.ts";
import { verbsFor } from "./verbs.ts";

const VERBS = await verbsFor("certs", "");

suite("commands whose first argument is an app", () => {
  const verb = VERBS.find(({ words }) => words === "certs add");
  assert(verb && namesAppFirst(verb));

  test("the app is taken as an argument or as --app", () => {
    assert.deepEqual(withApp(verb, ["web", "example.com"], {}), ["web", "example.com"]);
    assert.deepEqual(withApp(verb, ["example.com", undefined], { app: "web" }), ["web", "example.com"]);
  });

  test("missing and surplus arguments are named", () => {
    assert.throws(
      () => withApp(verb, [undefined, undefined], {}),
      /^UsageError: missing required argument 'app'; name the app: --app/,
    );
    assert.throws(
      () => withApp(verb, [undefined, undefined], { app: "web" }),
      new UsageError("missing required argument 'hostname'"),
    );
    assert.throws(() => withApp(verb, ["web", "example.com"], { app: "web" }), /example.com is one argument too many/);
  });
});
