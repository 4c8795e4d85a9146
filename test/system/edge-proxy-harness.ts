/** An app with one machine behind the edge proxy of a whole platform, for tests with real clients. */
import type { TestContext } from "node:test";
import { aBackend, freePort } from "#proxy/fixtures.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { until as patient } from "../support.ts";

/** Until something is so; fails when it takes longer than anything should. */
export async function until(what: () => Promise<boolean> | boolean): Promise<void> {
  await patient(what.toString(), what, { every_ms: 20 });
}

interface EdgeProxy {
  platform: TestPlatform;
  plain: number;
  secure: number;
  machine: string;
}

/** An app with one machine, whose port 8080 is a server of the test's, open on a plain and a TLS port. */
export async function openEdgeProxy(
  t: TestContext,
  listener: Parameters<typeof aBackend>[1],
  env: Record<string, string> = {},
  service: object = {},
): Promise<EdgeProxy> {
  const backend = await aBackend(t, listener);
  const [plain, secure] = [await freePort(), await freePort()];
  const platform = await testPlatform(t, env, { reach: () => ({ host: "127.0.0.1", port: backend.port }) });
  await platform.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
  const ports = [
    { port: plain, handlers: ["http"] },
    { port: secure, handlers: ["tls", "http"] },
  ];
  const config = { image: "hangar/hello", services: [{ protocol: "tcp", internal_port: 8080, ports, ...service }] };
  const { body } = await platform.ask("POST /v1/apps/web/machines", { body: { config } });
  await platform.ask(`GET /v1/apps/web/machines/${body.id}/wait?state=started`);
  await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
  await until(() =>
    fetch(`http://127.0.0.1:${plain}/`).then(
      (response) => response.ok,
      () => false,
    ),
  );
  return { platform, plain, secure, machine: body.id as string };
}
