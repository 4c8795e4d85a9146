import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { PlatformRows } from "./calls.ts";

/** The memory of the smallest machine, the unit of a region's free capacity. */
const SMALLEST_MB = 256;
/** The response where the number of machines is unlimited. */
const MANY = 1000;

interface Region {
  code: string;
  capacity: number;
}

/** Where machines of a size would fit; nothing is reserved. */
export const placementRoute = (rows: PlatformRows): Row =>
  route("POST /v1/platform/placements", {
    summary: "How many machines of a size fit into each region",
    part: "platform",
    access: "any",
    body: Type.Object({
      region: Type.Optional(Type.String({ description: "Regions, comma-separated; `any`, or empty, is every one." })),
      count: Type.Optional(Type.Integer({ minimum: 0, description: "0: as many as fit." })),
      compute: Type.Optional(Type.Object({ memory_mb: Type.Optional(Type.Integer({ minimum: 0 })) })),
    }),
    response: {
      status: 200,
      schema: Type.Object({
        regions: Type.Array(Type.Object({ region: Type.String(), count: Type.Integer(), concurrency: Type.Integer() })),
      }),
    },
    async handle(call) {
      const { region = "", count = 0, compute } = call.body;
      const { regions } = await rows.value<{ regions: Region[] }>("GET /v1/platform/regions", {}, call);
      const wanted = region.split(",").filter((code) => code !== "");
      const every = wanted.length === 0 || wanted.includes("any");
      const each = Math.max(1, (compute?.memory_mb ?? SMALLEST_MB) / SMALLEST_MB);
      const places = regions
        .filter(({ code }) => every || wanted.includes(code))
        .map(({ code, capacity }) => {
          const fits = capacity < 0 ? MANY : Math.floor(capacity / each);
          return { region: code, count: count === 0 ? fits : Math.min(count, fits), concurrency: fits };
        });
      return { regions: places.filter((place) => place.count > 0) };
    },
  });
