import { VERSION } from "#core/version.ts";
import { DASHBOARD_HEADERS, type Dashboard } from "./dashboard.ts";
import { openapi } from "./openapi.ts";
import { docsPage } from "./pages.ts";
import { FactsResponse, factsNow, type PlatformFacts } from "./platform-facts.ts";
import { type Readiness, ReadyAnswer } from "./readiness.ts";
import { type Row, route } from "./route.ts";
import { Type } from "./schema.ts";

interface Parts {
  /** Read at every request: the address is known only after the start. */
  facts: PlatformFacts;
  dashboard: Dashboard;
  readiness: Readiness;
  /** All rows, these included. */
  rows: () => readonly Row[];
}

/** The platform itself; nearly all of it needs no token. */
export function platformRoutes({ facts, dashboard, readiness, rows }: Parts): Row[] {
  return [
    route("GET /healthz", {
      summary: "Answers 200 while the process is there",
      part: "platform",
      access: "open",
      response: { status: 200, schema: Type.Object({ ok: Type.Boolean(), version: Type.String() }) },
      handle: async () => ({ ok: true, version: VERSION }),
    }),
    route("GET /readyz", {
      summary: "Answers 200 when requests can be served, 503 with reasons otherwise",
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
      summary: "The API, readable",
      part: "platform",
      access: "open",
      response: { status: 200, type: "text/html" },
      handle: async () => docsPage(rows()),
    }),
    route("GET /openapi.json", {
      summary: "The API as an OpenAPI 3.1 document",
      part: "platform",
      access: "open",
      response: { status: 200, type: "application/json" },
      handle: async () => JSON.stringify(openapi(rows(), facts.base_url)),
    }),
    route("GET /v1/platform/facts", {
      summary: "What this platform is made of, and how the box under it is",
      part: "platform",
      access: "read account",
      response: { status: 200, schema: FactsResponse },
      handle: async () => await factsNow(facts),
    }),
  ];
}
