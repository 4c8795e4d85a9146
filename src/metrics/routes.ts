import { VERSION } from "#core/version.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";

const text = Type.String();

/** The Prometheus-compatible query API of an organization. */
export function metricsRoutes(): Row[] {
  return [
    route("GET /prometheus/:org_slug/api/v1/status/buildinfo", {
      summary: "What Grafana asks to learn which features there are",
      part: "metrics",
      access: "read org",
      scheme: "metrics",
      answer: {
        status: 200,
        schema: Type.Object({
          status: Type.Literal("success"),
          data: Type.Object({
            version: text,
            revision: text,
            branch: text,
            buildUser: text,
            buildDate: text,
            goVersion: text,
          }),
        }),
      },
      // The version is the one of the query API we are compatible with; the revision is ours.
      handle: async () => ({
        status: "success" as const,
        data: { version: "2.45.0", revision: VERSION, branch: "", buildUser: "", buildDate: "", goVersion: "" },
      }),
    }),
  ];
}
