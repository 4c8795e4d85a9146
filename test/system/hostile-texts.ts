/** Texts that run as soon as they are taken for markup, or are clicked; and how to see that one was. */
import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";

export const HOSTILE = [
  `"'><img src=x onerror="window.owned=1">`,
  `</script><script>window.owned=1</script>`,
  `<svg onload="window.owned=1"></svg>`,
  `javascript:window.owned=1//<iframe srcdoc="<script>parent.owned=1</script>"></iframe>`,
  `"><style>*{display:none}</style><base href="https://evil.example/">`,
];

/** The same value with markup in every text whose key is not kept, and in the names of what users may name freely. */
export function tampered(value: unknown, markup: string, kept: RegExp, key = ""): unknown {
  if (typeof value === "string") return kept.test(key) || value === "" ? value : `${value}${markup}`;
  if (Array.isArray(value)) return value.map((one) => tampered(one, markup, kept, key));
  if (typeof value !== "object" || value === null) return value;
  const free = ["metadata", "env", "labels"].includes(key) ? { [markup]: markup } : {};
  return {
    ...Object.fromEntries(Object.entries(value).map(([name, one]) => [name, tampered(one, markup, kept, name)])),
    ...free,
  };
}

/** What got into the page as markup. */
const INJECTED = `[...document.querySelectorAll("img[src=x], iframe, base, svg[onload], main script, main style, [onerror], [onload], a[href^=javascript]")].map((one) => one.outerHTML)`;

export async function nothingRan(page: Page, where: string): Promise<void> {
  assert.deepEqual(await page.evaluate(INJECTED), [], where);
  assert.equal(await page.evaluate("window.owned"), undefined, where);
}

/** A page that does take it for markup is owned: otherwise nothing that follows says anything. */
export async function runsWhereCareless(browser: Browser): Promise<void> {
  const careless = await browser.newPage();
  await careless.setContent(`<p title="${HOSTILE[0]}">`);
  await careless.waitForFunction("window.owned === 1");
  await careless.close();
}
