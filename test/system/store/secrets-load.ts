/**
 * A load on the whole platform whose every moment can be checked: clients set one secret after the other, and
 * each raises its app's version by one. So in any consistent copy an app has as many secrets as its version.
 */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { until } from "../../support.ts";
import type { Daemon } from "../daemon.ts";

const SECRETS_PER_APP = 100;

export class SecretsLoad {
  /** How many secrets of each app were acknowledged. */
  readonly acked = new Map<string, number>();
  readonly #clients: Promise<void>[];
  #total = 0;
  #stopping = false;

  constructor(daemon: Daemon, clients: number) {
    this.#clients = Array.from({ length: clients }, (_, client) => this.#work(daemon, client));
  }

  /** Resolves when `count` more secrets have been acknowledged. */
  async progress(count: number): Promise<void> {
    const goal = this.#total + count;
    await until(`${count} more secrets are acknowledged`, () => this.#total >= goal, { every_ms: 5 });
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#clients);
  }

  async #work(daemon: Daemon, client: number): Promise<void> {
    for (let round = 0; !this.#stopping; round++) {
      const app_name = `client-${client}-${round}`;
      const created = await daemon.call("POST", "/v1/apps", { app_name });
      assert.equal(created.status, 201, JSON.stringify(created.body));
      for (let n = 1; n <= SECRETS_PER_APP && !this.#stopping; n++) {
        const { status } = await daemon.call("POST", `/v1/apps/${app_name}/secrets/S${n}`, { value: `value ${n}` });
        assert.equal(status, 201);
        this.acked.set(app_name, n);
        this.#total++;
        // A steady load, not all there is: what runs beside it is what is examined.
        await delay(20);
      }
    }
  }
}

export const APP_SECRETS = `SELECT apps.name AS name, secrets_version AS version, count(app_secrets.name) AS secrets
  FROM apps LEFT JOIN app_secrets ON app_id = apps.id GROUP BY apps.id, apps.name, secrets_version`;

/** What is wrong with a copy that was begun when `acked` was true already; `rows` come from `APP_SECRETS`. */
export function inconsistencies(
  rows: readonly { name: string; version: number; secrets: number }[],
  acked: ReadonlyMap<string, number>,
): string[] {
  const wrong = rows
    .filter(({ version, secrets }) => version !== secrets)
    .map(({ name, version, secrets }) => `${name} is at version ${version} with ${secrets} secrets`);
  const kept = new Map(rows.map(({ name, secrets }) => [name, secrets]));
  const lost = [...acked].filter(([name, n]) => (kept.get(name) ?? 0) < n).map(([name]) => `${name} lacks secrets`);
  return [...wrong, ...lost];
}
