/** Tokens of the platform in requests over a machine's own socket: those that were narrowed to its inside, and no others. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Caveat } from "#core/caveats.ts";
import { attenuate, parse, serialize } from "#core/macaroon.ts";
import { type Inside, inside, type Machine } from "./inside.ts";

async function setup(t: { after(end: () => unknown): void }) {
  const platform = await inside(t);
  const [one, two] = [await platform.machine("one"), await platform.machine("two")];
  const { body } = await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } });
  const narrowed = (...caveats: Caveat[]): string => serialize(attenuate(parse(body.token as string), caveats));
  return { platform, one, two, narrowed, bound: narrowed({ type: "from_machine", machine: one.id }) };
}

const bearing = (platform: Inside, machine: Machine, target: string, token: string, body?: object) =>
  platform.from(machine, target, {
    headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });

suite("tokens at a machine's socket", () => {
  test("a token bound to a machine works at its socket, and nowhere else", async (t) => {
    const { platform, one, two, bound } = await setup(t);
    const listed = await bearing(platform, one, "GET /v1/apps/web/machines", bound);
    assert.equal(listed.status, 200, listed.text);
    assert.deepEqual(new Set((listed.body as { id: string }[]).map(({ id }) => id)), new Set([one.id, two.id]));
    const made = await bearing(platform, one, "POST /v1/apps", bound, { app_name: "made-inside" });
    assert.equal(made.status, 201, made.text);
    for (const answer of [
      await bearing(platform, two, "GET /v1/apps/web/machines", bound),
      await platform.ask("GET /v1/apps/web/machines", { token: bound }),
    ]) {
      assert.equal(answer.status, 403);
      assert.match(answer.body.error, new RegExp(`only from inside machine ${one.id}`));
    }
  });

  test("other caveats of the token apply as well", async (t) => {
    const { platform, one, narrowed } = await setup(t);
    const reader = narrowed({ type: "from_machine", machine: one.id }, { type: "actions", actions: 1 });
    assert.equal((await bearing(platform, one, "GET /v1/apps/web", reader)).status, 200);
    const refused = await bearing(platform, one, "DELETE /v1/apps/web", reader);
    assert.deepEqual([refused.status, /caveat actions/.test(refused.body.error)], [403, true]);
  });

  test("a revoked or invalid token is refused instead of falling back to the machine", async (t) => {
    const { platform, one } = await setup(t);
    for (const target of [`GET /v1/apps/web/machines/${one.id}`, "GET /v1/apps/web/machines"])
      assert.equal((await bearing(platform, one, target, "made-up")).status, 401, target);
  });

  test("a token that is not bound to the machine does not work at its socket", async (t) => {
    const { platform, one, narrowed } = await setup(t);
    for (const token of [platform.token, narrowed()]) {
      const { status, body } = await bearing(platform, one, "GET /v1/apps", token);
      assert.deepEqual([status, body.error.includes(`the inside of machine ${one.id}`)], [403, true]);
    }
  });

  test("without a token a machine sees only itself", async (t) => {
    const { platform, one, two } = await setup(t);
    const statuses = async (...targets: string[]): Promise<number[]> =>
      await Promise.all(targets.map(async (target) => (await platform.from(one, target)).status));
    assert.deepEqual(
      await statuses(
        `GET /v1/apps/web/machines/${one.id}`,
        `GET /v1/apps/web/machines/${two.id}`,
        "GET /v1/apps/web/machines",
        "GET /v1/apps/web",
        "GET /v1/apps",
        "GET /v1/orgs/personal/tokens",
        "DELETE /v1/apps/web",
      ),
      [200, 404, 401, 401, 401, 401, 401],
    );
  });
});
