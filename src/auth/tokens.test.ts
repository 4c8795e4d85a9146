import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import { Sealer } from "#core/sealer.ts";
import { migrate } from "#stores/migrate.ts";
import { sqlAuthStore } from "#stores/sql/auth.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { anOrg } from "./fixtures.ts";
import { TokenService } from "./tokens.ts";

test("a token whose organization is deleted during verification is unknown, and none is minted for it", async () => {
  const database = inlineSqlite();
  await migrate(database);
  const store = sqlAuthStore(database);
  const org = anOrg();
  await store.insertOrg(org, 1);
  const ids = randomIds(systemClock);
  const tokens = new TokenService({ store, sealer: new Sealer(new Uint8Array(32)), clock: systemClock });
  const maker = await tokens.verify(await tokens.createFull("", ids));
  const wanted = { org, kind: "org", name: "", expiry_ms: 60_000, maker } as const;
  const { text } = await tokens.create(wanted, ids);
  const { findOrgById } = store;
  store.findOrgById = async (id) => {
    await store.deleteOrg(id);
    return await findOrgById(id);
  };
  await assert.rejects(tokens.verify(text), { code: "unauthorized", message: /not known here/ });
  const late = tokens.create(wanted, ids);
  await assert.rejects(late, { code: "not_found", message: /was deleted in the meantime/ });
});
