/** A platform whose metrics move when the test says so: one round after the other, each kept before the next. */
import { systemClock } from "#core/clock.ts";
import { type VirtualClock, virtualClock } from "#core/fixtures.ts";
import type { TestPlatform } from "./platform.ts";
import { until } from "./support.ts";

const STEP_MS = 15_000;

/** The engine's own clock is the real one, so the platform's begins there too; it moves when the test says so. */
export const clockHere = (): VirtualClock => virtualClock(systemClock.now());

export async function rounds(platform: TestPlatform, clock: VirtualClock, count: number): Promise<void> {
  const { id } = (await platform.ask("GET /v1/orgs/personal")).body;
  const kept = async (): Promise<number> => (await platform.metrics().status(id)).storage.samples_appended;
  for (let i = 0; i < count; i++) {
    const before = await kept();
    await clock.advance(STEP_MS);
    await until("the round is kept", async () => (await kept()) > before);
  }
}

/** A volume that can be mounted. */
export async function aVolume(platform: TestPlatform): Promise<string> {
  const path = "/v1/apps/web/volumes";
  const { id } = (await platform.ask(`POST ${path}`, { body: { name: "data", size_gb: 1, region: "local" } })).body;
  await until("the volume is made", async () => (await platform.ask(`GET ${path}/${id}`)).body.state === "created");
  return id;
}
