/**
 * Pictures of the dashboard's pages: of an emulated platform with three apps, in light, dark and phone width. The documents
 * show them, and a test compares them with the pages as they are.
 */
import type { Browser, Page } from "playwright-core";
import { startPlatform } from "../../src/testing/index.ts";
import { until } from "../support.ts";
import { visit } from "./browser.ts";

export const VARIANTS = {
  light: { viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  dark: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: "light" },
} as const;
export type Variant = keyof typeof VARIANTS;

/** Pages by the name of their picture, with a text that is there when they are complete. */
export const PAGES: Readonly<Record<string, { path: string; ready: string }>> = {
  overview: { path: "overview", ready: "shop" },
  app: { path: "apps/shop", ready: "faster checkout" },
  releases: { path: "apps/shop/releases", ready: "faster checkout" },
  logs: { path: "apps/shop/logs", ready: "started registry" },
  machines: { path: "machines", ready: "worker-2" },
  board: { path: "metrics/apps", ready: "Requests by status" },
  explorer: { path: "metrics/explore?query=sum+by+(app)+(rate(svc_instance_cpu[5m]))", ready: "points" },
  images: { path: "images", ready: "Pull from a registry" },
  tokens: { path: "tokens", ready: "May a token do that?" },
};

interface Emulated {
  base_url: string;
  token: string;
  /** Its own time, which its charts are of. */
  now(): number;
  close(): Promise<void>;
}

const SERVICES = [
  {
    protocol: "tcp" as const,
    internal_port: 8080,
    autostart: true,
    ports: [{ port: 8080, handlers: ["http" as const] }],
  },
];

/** A quarter of an hour. */
const [STEPS, STEP_MS] = [60, 15_000] as const;

/** A platform as one finds it on a usual day. */
export async function emulatedDay(): Promise<Emulated> {
  // It ends about now: the metrics engine refuses samples of the future, by the real clock.
  const emulator = await startPlatform({ port: 0, metrics: true, time: new Date(Date.now() - STEPS * STEP_MS) });
  const { client } = emulator;
  for (const [app_name, image, count] of [
    ["shop", "registry.example.com/shop:42", 3],
    ["worker", "registry.example.com/worker:7", 2],
    ["docs", "hangar/hello", 1],
  ] as const) {
    const params = { app_name };
    await client.call("POST /v1/apps", { body: { app_name, org_slug: "personal" } });
    await client.call("POST /v1/apps/:app_name/ip_assignments", { params, body: { type: "shared_v4" } });
    for (let n = 1; n <= count; n++) {
      const config = {
        image,
        guest: { cpus: 1, memory_mb: 256 },
        ...(app_name === "worker" ? {} : { services: SERVICES }),
      };
      const body = { name: `${app_name}-${n}`, config };
      const machine = await client.call("POST /v1/apps/:app_name/machines", { params, body });
      const one = { app_name, machine_id: machine.id };
      await client.call("GET /v1/apps/:app_name/machines/:machine_id/wait", {
        params: one,
        query: { state: ["started"] },
      });
      if (app_name === "worker" && n === 2)
        await client.call("POST /v1/apps/:app_name/machines/:machine_id/suspend", { params: one });
    }
  }
  await releases(client);
  await client.call("POST /v1/apps/:app_name/volumes", {
    params: { app_name: "shop" },
    body: { name: "data", size_gb: 10 },
  });
  // In steps of the sampling, each awaited, so that charts have lines.
  const newest_s = async (): Promise<number> => {
    const query = "max(timestamp(svc_instance_memory_mem_total))";
    const url = `${emulator.base_url}/prometheus/personal/api/v1/query?nocache=1&time=${emulator.clock.now() / 1000}&query=${encodeURIComponent(query)}`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${emulator.token}` } });
    const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } };
    return Number(data.result[0]?.value[1] ?? 0);
  };
  for (let step = 0; step < STEPS; step++) {
    const before = emulator.clock.now();
    await emulator.clock.advance(STEP_MS);
    await until("the samples of this step", async () => (await newest_s()) * 1000 > before - STEP_MS);
  }
  return {
    base_url: emulator.base_url,
    token: emulator.token,
    now: () => emulator.clock.now(),
    close: () => emulator.close(),
  };
}

async function releases(client: Awaited<ReturnType<typeof startPlatform>>["client"]): Promise<void> {
  for (const [tag, message, digit] of [
    ["41", "new search", "4"],
    ["42", "faster checkout", "8"],
  ] as const) {
    const params = { app_name: "shop" };
    const image = `registry.example.com/shop:${tag}`;
    const { version } = await client.call("POST /v1/apps/:app_name/releases", {
      params,
      body: { description: "deploy", message, definition: {}, image, image_digest: `sha256:${digit.repeat(64)}` },
    });
    await client.call("POST /v1/apps/:app_name/releases/:version", {
      params: { ...params, version: String(version) },
      body: { status: "complete" },
    });
  }
}

/** The page as a picture in WebP. */
export async function picture(
  scope: Parameters<typeof visit>[0],
  browser: Browser,
  { base_url, token, now }: Emulated,
  { name, variant }: { name: string; variant: Variant },
): Promise<Buffer> {
  const wanted = PAGES[name];
  if (!wanted) throw new Error(`there is no page ${name}`);
  const { page } = await visit(scope, browser, { base_url, token }, { ...VARIANTS[variant], reducedMotion: "reduce" });
  await page.clock.setSystemTime(now());
  await page.goto(`${base_url}/#/${wanted.path}`);
  await page.getByText(wanted.ready).first().waitFor();
  await page.locator("[aria-busy=true], .loading").first().waitFor({ state: "detached" });
  const session = await page.context().newCDPSession(page);
  const taken = async () => (await session.send("Page.captureScreenshot", { format: "webp", quality: 70 })).data;
  // Charts are drawn after their data has come: it is complete when two pictures are the same.
  let last = "";
  const settled = await until(
    "the page stands still",
    async () => {
      const before = last;
      last = await taken();
      return last === before && last;
    },
    { every_ms: 200 },
  );
  await page.context().close();
  return Buffer.from(settled, "base64");
}

/** The share of pixels that differ clearly between two pictures, as the browser decodes them; 1 when the sizes differ. */
export async function difference(page: Page, before: Buffer, after: Buffer): Promise<number> {
  const urls = [before, after].map((bytes) => `data:image/webp;base64,${bytes.toString("base64")}`);
  return await page.evaluate<number>(`(async () => {
    const [x, y] = await Promise.all(${JSON.stringify(urls)}.map(async (src) => {
      const image = Object.assign(new Image(), { src });
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      return context.getImageData(0, 0, image.width, image.height);
    }));
    if (x.width !== y.width || x.height !== y.height) return 1;
    let differ = 0;
    for (let at = 0; at < x.data.length; at += 4)
      if ([0, 1, 2].some((channel) => Math.abs(x.data[at + channel] - y.data[at + channel]) > 60)) differ++;
    return differ / (x.data.length / 4);
  })()`);
}
