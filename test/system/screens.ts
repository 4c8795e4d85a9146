/**
 * Pictures of the dashboard's pages: of an emulated platform with three apps, in light, dark and phone width. The documents
 * show them, and a test compares them with the pages as they are.
 */
import type { Browser, Page, Route } from "playwright-core";
import { until } from "../support.ts";
import { visit } from "./browser.ts";
import type { Emulated, Emulations } from "./screens-day.ts";

export const VARIANTS = {
  light: { viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  dark: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: "light" },
} as const;
export type Variant = keyof typeof VARIANTS;

interface Screen {
  title: string;
  /** With `:machine`, `:volume` and `:connector` for the ids of the day. */
  path: string;
  /** A text that is there when the page is complete. */
  ready: string;
  /** Of a platform where nothing was made yet, or of nobody who has signed in. */
  as?: "newcomer" | "stranger";
}

const APP = "apps/shop";
const MACHINE = "machines/shop/:machine";

/** Pages by the name of their picture. */
export const PAGES: Readonly<Record<string, Screen>> = {
  "sign-in": { title: "Sign in", path: "", ready: "Kept in this tab only", as: "stranger" },
  start: { title: "The first start", path: "overview", ready: "Connect the command line", as: "newcomer" },
  overview: { title: "Overview", path: "overview", ready: "Running now" },
  app: { title: "An app", path: APP, ready: "faster checkout" },
  "app-machines": { title: "An app's machines", path: `${APP}/machines`, ready: "shop-3" },
  releases: { title: "Releases and builds", path: `${APP}/releases`, ready: "faster checkout" },
  previews: { title: "Previews", path: `${APP}/previews`, ready: "feature/basket" },
  logs: { title: "Logs", path: `${APP}/logs`, ready: "started registry" },
  "app-metrics": { title: "An app's metrics", path: `${APP}/metrics`, ready: "Open files" },
  network: { title: "Network", path: `${APP}/services`, ready: "Host names" },
  storage: { title: "Storage", path: `${APP}/storage`, ready: "data" },
  secrets: { title: "Secrets", path: `${APP}/secrets`, ready: "STRIPE_KEY" },
  "app-settings": { title: "An app's settings", path: `${APP}/settings`, ready: "Machine config" },
  machines: { title: "Machines", path: "machines", ready: "worker-2" },
  "new-machine": { title: "New machine", path: "machines/new", ready: "What to run" },
  machine: { title: "A machine", path: MACHINE, ready: "starting" },
  "machine-logs": { title: "A machine's logs", path: `${MACHINE}/logs`, ready: "started registry" },
  "machine-metrics": { title: "A machine's metrics", path: `${MACHINE}/metrics`, ready: "CPU, % of one" },
  checks: { title: "Checks", path: `${MACHINE}/checks`, ready: "alive" },
  config: { title: "Config", path: `${MACHINE}/config`, ready: "CURRENCY" },
  terminal: { title: "Terminal", path: `${MACHINE}/terminal`, ready: "connected" },
  apps: { title: "Apps", path: "apps", ready: "worker" },
  services: { title: "Services", path: "services", ready: "8080" },
  volumes: { title: "Volumes", path: "volumes", ready: "data" },
  volume: { title: "A volume", path: "volumes/shop/:volume", ready: "Snapshots" },
  images: { title: "Images", path: "images", ready: "Pull from a registry" },
  activity: { title: "Activity", path: "activity", ready: "worker-2" },
  board: { title: "Metrics: apps board", path: "metrics/apps", ready: "Requests by status" },
  explorer: {
    title: "Metrics: the explorer",
    path: "metrics/explore?query=sum+by+(app)+(rate(svc_instance_cpu[5m]))",
    ready: "points",
  },
  alerts: { title: "Alerts", path: "alerts", ready: "QueueTooLong" },
  silences: { title: "Silences", path: "alerts/silences", ready: "known, fixed on Monday" },
  receivers: { title: "Receivers", path: "alerts/receivers", ready: "operator" },
  rules: { title: "Rules", path: "alerts/rules", ready: "queues" },
  databases: { title: "Databases", path: "databases", ready: "ledger" },
  connectors: { title: "Connectors", path: "connectors", ready: "billing" },
  connector: { title: "A connector", path: "connectors/:connector", ready: "every other path" },
  identity: { title: "Identity", path: "identity", ready: "The issuer" },
  hosts: { title: "Hosts", path: "hosts", ready: "Regions" },
  tokens: { title: "Tokens", path: "tokens", ready: "May a token do that?" },
  settings: { title: "Settings", path: "settings", ready: "Readiness" },
  unknown: { title: "An unknown address", path: "nowhere", ready: "There is no page nowhere." },
};

/** The address of a page. */
const pathOf = ({ path }: Screen, ids: Emulated["ids"]): string =>
  path.replaceAll(/:(machine|volume|connector)/g, (_, name: keyof Emulated["ids"]) => ids[name]);

/** What pages say about the box they run on: the same on every box. */
const BOX = {
  "**/v1/platform/facts": {
    base_url: "https://hangar.example.com",
    node: "v24",
    system: "Linux 6.1",
    cpus: 8,
    load: [1.2, 1.1, 0.9],
    memory_bytes: 180 * 2 ** 20,
    box_memory_bytes: 32 * 2 ** 30,
    box_free_bytes: 24 * 2 ** 30,
    disk_bytes: 500 * 2 ** 30,
    disk_free_bytes: 320 * 2 ** 30,
  },
  "**/v1/platform/disk": {
    total_bytes: 500 * 2 ** 30,
    free_bytes: 320 * 2 ** 30,
    objects: { place: "/var/lib/hangar/objects", bytes: 3 * 2 ** 20, count: 1 },
  },
};

async function withFacts(route: Route, facts: object): Promise<void> {
  const response = await route.fetch();
  await route.fulfill({ response, json: { ...((await response.json()) as object), ...facts } });
}

/** A tab in which the pages of a variant are shown, one after the other. */
export async function openScreens(
  scope: Parameters<typeof visit>[0],
  browser: Browser,
  { day, newcomer }: Emulations,
  options: Parameters<typeof visit>[3],
  /** Evaluated in each page before it begins. */
  script = "",
): Promise<{ page(name: string): Promise<Page>; complaints(): string[] }> {
  const tabs = new Map<Screen["as"], Awaited<ReturnType<typeof visit>>>();
  return {
    async page(name) {
      const screen = PAGES[name];
      if (!screen) throw new Error(`there is no page ${name}`);
      const { base_url, token, now, ids } = screen.as === "newcomer" ? newcomer : day;
      const signedIn = screen.as === "stranger" ? { base_url } : { base_url, token };
      const known = tabs.get(screen.as);
      const tab = known ?? (await visit(scope, browser, signedIn, { ...options, reducedMotion: "reduce" }));
      tabs.set(screen.as, tab);
      const { page } = tab;
      if (!known) {
        if (script !== "") await page.addInitScript(script);
        for (const [url, facts] of Object.entries(BOX)) await page.route(url, (route) => withFacts(route, facts));
      }
      await page.clock.setSystemTime(now());
      // A load of its own: nothing of the last page is left.
      await page.goto("about:blank");
      await page.goto(`${base_url}/#/${pathOf(screen, ids)}`);
      await page.locator("main").getByText(screen.ready).filter({ visible: true }).first().waitFor();
      await page.locator("[aria-busy=true], .loading").first().waitFor({ state: "detached" });
      return page;
    },
    complaints: () => [...tabs.values()].flatMap(({ complaints }) => complaints),
  };
}

/** The page as a picture in WebP. */
export async function picture(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const taken = async () => (await session.send("Page.captureScreenshot", { format: "webp", quality: 60 })).data;
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
  await session.detach();
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
