import { VERSION } from "#core/version.ts";
import { openapi } from "./openapi.ts";
import { docsPage, homePage } from "./pages.ts";
import { type Row, route } from "./route.ts";
import { Type } from "./schema.ts";

interface Facts {
  base_url: string;
  driver: string;
  database: string;
}

/** Everything about the platform itself that needs no token. `rows` are all rows, these included. */
export function platformRoutes(facts: () => Facts, rows: () => readonly Row[]): Row[] {
  return [
    route("GET /healthz", {
      summary: "Answers 200 when requests can be served",
      part: "platform",
      access: "open",
      answer: { status: 200, schema: Type.Object({ ok: Type.Boolean(), version: Type.String() }) },
      handle: async () => ({ ok: true, version: VERSION }),
    }),
    route("GET /", {
      summary: "A page for people: that it runs, and where to go",
      part: "platform",
      access: "open",
      answer: { status: 200, type: "text/html" },
      handle: async () => homePage(facts()),
    }),
    route("GET /docs", {
      summary: "The API, readable",
      part: "platform",
      access: "open",
      answer: { status: 200, type: "text/html" },
      handle: async () => docsPage(rows()),
    }),
    route("GET /openapi.json", {
      summary: "The API as an OpenAPI 3.1 document",
      part: "platform",
      access: "open",
      answer: { status: 200, type: "application/json" },
      handle: async () => JSON.stringify(openapi(rows(), facts().base_url)),
    }),
  ];
}
