import { VERSION } from "#core/version.ts";
import { DASHBOARD_HEADERS, type Dashboard } from "./dashboard.ts";
import { openapi } from "./openapi.ts";
import { docsPage } from "./pages.ts";
import { FactsResponse, factsNow, type PlatformFacts } from "./platform-facts.ts";
import { type Readiness, ReadyAnswer } from "./readiness.ts";
import { type Row, route } from "./route.ts";
import { Type } from "./schema.ts";

interface Parts {
  /** Read at each request: the address is known only after the start. */
  facts: PlatformFacts;
  dashboard: Dashboard;
  readiness: Readiness;
  /** All rows, including these. */
  rows: () => readonly Row[];
}

/** Routes of the platform itself; nearly all need no token. */
export function platformRoutes({ facts, dashboard, readiness, rows }: Parts): Row[] {
  // Cached, because they are public and expensive to build.
  const docs = remembered(() => docsPage(rows()));
  const document = remembered((base_url) => JSON.stringify(openapi(rows(), base_url)));
  return [
    route("GET /healthz", {
      summary: "Liveness: 200 while the process runs",
      part: "platform",
      access: "open",
      response: { status: 200, schema: Type.Object({ ok: Type.Boolean(), version: Type.String() }) },
      handle: async () => ({ ok: true, version: VERSION }),
    }),
    route("GET /readyz", {
      summary: "Readiness: 200 when requests can be served, 503 with reasons otherwise",
      part: "platform",
      access: "open",
      response: { status: 200, schema: ReadyAnswer },
      errors: ["not_ready"],
      handle: async () => await readiness.answer(),
    }),
    route("GET /", {
      summary: "The dashboard, for people",
      part: "platform",
      access: "open",
      response: { status: 200, type: "text/html", headers: DASHBOARD_HEADERS },
      handle: async () => await dashboard.page(),
    }),
    route("GET /docs", {
      summary: "API documentation",
      part: "platform",
      access: "open",
      response: { status: 200, type: "text/html" },
      handle: async () => docs(facts.base_url),
    }),
    route("GET /openapi.json", {
      summary: "The API as an OpenAPI 3.1 document",
      part: "platform",
      access: "open",
      response: { status: 200, type: "application/json" },
      handle: async () => document(facts.base_url),
    }),
    route("GET /v1/platform/facts", {
      summary: "Versions and health of the platform and its host",
      part: "platform",
      access: "read account",
      response: { status: 200, schema: FactsResponse },
      handle: async () => await factsNow(facts),
    }),
  ];
}

/** Built once per base URL, of which there is one after the start. */
function remembered(make: (base_url: string) => string): (base_url: string) => string {
  let last: { base_url: string; text: string } | undefined;
  return (base_url) => {
    if (last?.base_url !== base_url) last = { base_url, text: make(base_url) };
    return last.text;
  };
}
