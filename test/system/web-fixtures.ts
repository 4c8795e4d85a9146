/** What the tests of the dashboard begin with: a platform, a browser, and apps with a running machine. */
import assert from "node:assert/strict";
import { after, before } from "node:test";
import type { Browser } from "playwright-core";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { openBrowser, visit } from "./browser.ts";

type Visited = Awaited<ReturnType<typeof visit>>;

export interface Dashboard {
  readonly platform: TestPlatform;
  readonly browser: Browser;
  /** A tab on a page, by its address without `#/`. */
  open(t: Parameters<typeof visit>[0], place?: string, options?: Parameters<typeof visit>[3]): Promise<Visited>;
  /** The same with a token that may only read. */
  openReadOnly(t: Parameters<typeof visit>[0], place: string): Promise<Visited>;
  /** Closed after the suite's tests, before the platform. */
  after(end: () => unknown): void;
}

/** In a suite: one platform and one browser for its tests. `prepare` runs before the first of them. */
export function dashboard(prepare: (opened: Dashboard) => Promise<void> = async () => {}): Dashboard {
  const ends: (() => unknown)[] = [];
  const scope = { after: (end: () => unknown) => void ends.push(end) };
  let platform: TestPlatform | undefined;
  let browser: Browser | undefined;
  const opened: Dashboard = {
    get platform() {
      return platform ?? assert.fail("the platform is open from the first test on");
    },
    get browser() {
      return browser ?? assert.fail("the browser is open from the first test on");
    },
    async open(t, place, options) {
      const visited = await visit(t, opened.browser, opened.platform, options);
      if (place !== undefined) await visited.page.goto(`${opened.platform.base_url}/#/${place}`);
      return visited;
    },
    async openReadOnly(t, place) {
      const { base_url, ask } = opened.platform;
      const { body } = await ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly", name: "eyes" } });
      const visited = await visit(t, opened.browser, { base_url, token: body.token });
      await visited.page.goto(`${base_url}/#/${place}`);
      return visited;
    },
    after: scope.after,
  };
  before(async () => {
    platform = await testPlatform(scope);
    browser = await openBrowser(scope);
    await prepare(opened);
  });
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return opened;
}

interface AppMachine {
  id: string;
  instance_id: string;
}

/** A machine of an app that runs; the app is created with a shared address if it does not exist. */
export async function openApp(
  { platform }: Pick<Dashboard, "platform">,
  app_name: string,
  { name = `${app_name}-1`, ...config }: { name?: string; image?: string; [field: string]: unknown } = {},
): Promise<AppMachine> {
  const made = await platform.ask("POST /v1/apps", { body: { app_name } });
  if (made.status === 201)
    await platform.ask(`POST /v1/apps/${app_name}/ip_assignments`, { body: { type: "shared_v4" } });
  const body = { name, config: { image: `registry.example/${app_name}:1`, ...config } };
  const machine = await platform.ask(`POST /v1/apps/${app_name}/machines`, { body });
  assert.equal(machine.status, 200, machine.text);
  const { id, instance_id } = machine.body;
  await platform.ask(`GET /v1/apps/${app_name}/machines/${id}/wait?state=started`);
  return { id, instance_id };
}
