/** A real browser for a test: Debian's Chromium, driven by playwright-core, closed at the end. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import type { TestContext } from "node:test";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { PATIENCE_MS } from "../support.ts";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Why there is no browser here, for `skip`; undefined where there is one. */
export const noBrowser: string | undefined = CHROMIUM.some(existsSync)
  ? undefined
  : "there is no Chromium here (apt-get install chromium)";

export async function openBrowser(t: Pick<TestContext, "after">): Promise<Browser> {
  const executablePath = CHROMIUM.find(existsSync);
  assert(executablePath);
  // Its own sandbox does not work for root; what it opens here is our own page alone.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  t.after(() => browser.close());
  return browser;
}

interface Visit {
  /** What is evaluated in it is written as text: these files are checked as programs of Node, which has no document. */
  page: Page;
  /** What the browser complained about: errors, refused by the content policy, requests to elsewhere. */
  complaints: string[];
}

/** A tab on the platform's dashboard; signed in when there is a token. */
export async function visit(
  t: Pick<TestContext, "after" | "diagnostic"> & { passed?: boolean },
  browser: Browser,
  { base_url, token }: { base_url: string; token?: string },
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  // Only reached when something is wrong: a busy box is slow, and no reason to fail.
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  const waiting = new Set<string>();
  t.after(async () => {
    // What a test that failed would like to know: what the page said, still waited for, and showed.
    if (t.passed === false) {
      const shown = (await page.content().catch(() => "")).slice(-400);
      t.diagnostic(JSON.stringify({ url: page.url(), complaints, waiting: [...waiting], shown }));
    }
    await context.close();
  });
  page.on("request", (request) => waiting.add(request.url()));
  page.on("requestfinished", (request) => waiting.delete(request.url()));
  page.on("requestfailed", (request) => {
    waiting.delete(request.url());
    waiting.add(`${request.url()} ${request.failure()?.errorText}`);
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // Answers that are errors are shown on the page; the browser notes them as well.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      complaints.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(base_url).origin) && !request.url().startsWith("blob:"))
      complaints.push(`asked ${request.url()}`);
  });
  if (token) {
    const stored = `if (location.origin === ${JSON.stringify(base_url)}) sessionStorage.setItem("hangar.token", ${JSON.stringify(token)})`;
    await context.addInitScript(stored);
  }
  await page.goto(base_url);
  return { page, complaints };
}

const require = createRequire(import.meta.url);

interface Violation {
  id: string;
  help: string;
  nodes: { html: string; failureSummary?: string }[];
}

/** What axe finds wrong with the page as it is now, in words. */
export async function axe(page: Page): Promise<string[]> {
  // Evaluated by the debugger, which the content policy does not bind.
  await page.evaluate((require("axe-core") as { source: string }).source);
  const found = await page.evaluate<Violation[]>("axe.run().then(({ violations }) => violations)");
  return found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html} ${nodes[0]?.failureSummary ?? ""}`);
}
