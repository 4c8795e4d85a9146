import { CATALOGUE } from "#core/error-catalogue.ts";
import { VERSION } from "#core/version.ts";
import type { JsonSchema } from "./json-schema.ts";
import { PARTS, type Part, type Row } from "./route.ts";
import { allowedWords } from "./validate.ts";

/** Generated pages are self-contained: no scripts, no fonts, no requests to other origins. */
export const PAGE_HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
} as const;

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --dim: #777; --mark: #6e40c9; --soft: #8881; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 .25rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
code, pre { font: .88em/1.45 ui-monospace, monospace; } pre { background: var(--soft); padding: .8rem 1rem; border-radius: .5rem; overflow-x: auto; }
a { color: inherit; } nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; } details[open] { background: var(--soft); }
summary { cursor: pointer; padding: .5rem .8rem; } summary small { color: var(--dim); }
details > div { padding: 0 .8rem .8rem; }
b.verb { display: inline-block; min-width: 4.2em; font: 600 .82em ui-monospace, monospace; color: var(--mark); }
table { border-collapse: collapse; width: 100%; margin: .4rem 0; } td, th { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td:first-child { white-space: nowrap; } .dim { color: var(--dim); }
@media (max-width: 40rem) { td:first-child { white-space: normal; } }
`;

export const html = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
const code = (text: string): string => `<code>${html(text)}</code>`;
/** Text with `code` in backticks. */
const prose = (text: string): string => html(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");

export function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${html(title)}</title><style>${STYLE}</style></head><body>${body}</body></html>`;
}

/** The whole API on one page. */
export function docsPage(rows: readonly Row[]): string {
  const parts = (Object.keys(PARTS) as Part[]).filter((part) => rows.some((row) => row.part === part));
  const sections = parts.map((part) => {
    const own = rows.filter((row) => row.part === part);
    return `<section><h2 id="${part}">${part}</h2><p>${prose(PARTS[part])}</p>${own.map(endpoint).join("")}</section>`;
  });
  const codes = Object.entries(CATALOGUE).map(
    ([name, { http, retryable, meaning }]) =>
      `<tr id="error-${name}"><td>${code(name)}</td><td>${http}</td><td>${prose(meaning)}${retryable ? ' <span class="dim">Worth a retry.</span>' : ""}</td></tr>`,
  );
  return page(
    "Hangar API",
    `<header><h1>Hangar API</h1><p class="dim">version ${html(VERSION)} · <a href="/openapi.json">OpenAPI 3.1</a></p></header>
<nav>${parts.map((part) => `<a href="#${part}">${part}</a>`).join("")}<a href="#errors">errors</a></nav>
<main><p>Send ${code("Authorization: Bearer <token>")}. Bodies and answers are JSON. Every answer has ${code("svc-request-id")}; every POST takes ${code("Idempotency-Key")}.</p>
${sections.join("")}
<section><h2 id="errors">errors</h2><p>An error answer is ${code("{error, status, retryable, request_id, hint?, details?}")}; ${code("status")} is one of these codes.</p>
<table><tr><th>code</th><th>HTTP</th><th>meaning</th></tr>${codes.join("")}</table></section></main>`,
  );
}

function endpoint(row: Row): string {
  const path = row.path.replaceAll(/:(\w+)/g, "{$1}");
  const answer = row.response.schema ? fields("Answer", row.response.schema) : "";
  const special = row.errors ?? [];
  return `<details><summary><b class="verb">${row.method}</b>${code(path)} <small>${html(row.summary)}</small></summary><div>
${row.description ? `<p>${prose(row.description)}</p>` : ""}
<p class="dim">Access: ${html(accessWords(row))} · answers ${row.response.status}</p>
${row.query ? fields("Query", row.query) : ""}${row.body ? fields("Body", row.body) : ""}${answer}
${special.length > 0 ? `<p class="dim">Beyond the usual errors: ${special.map((name) => `<a href="#error-${name}">${code(name)}</a>`).join(" ")}</p>` : ""}</div></details>`;
}

function accessWords({ access }: Row): string {
  if (access === "open") return "anyone, no token";
  if (access === "any") return "any token";
  if (access === "machine") return "a machine itself";
  const [action, scope] = access.split(" ");
  return scope === "account" ? "full-access token" : `${action} on the ${scope}`;
}

function fields(title: string, schema: JsonSchema): string {
  const { properties, required = [] } = schema;
  if (!properties) return "";
  const lines = Object.entries(properties).map(([name, property]) => {
    const notes = [allowedWords(property) ?? "", required.includes(name) ? "required" : ""].filter(Boolean).join(", ");
    const description = property.description ? ` — ${prose(property.description)}` : "";
    return `<tr><td>${code(name)}</td><td><span class="dim">${html(notes)}</span>${description}</td></tr>`;
  });
  return `<table><tr><th colspan="2">${title}</th></tr>${lines.join("")}</table>`;
}
