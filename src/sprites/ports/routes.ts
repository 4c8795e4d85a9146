import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { orgOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import { SessionCounts } from "#machines/runtime/machine-sessions.ts";
import { SPRITE_ROW } from "../route-row.ts";
import { OrgQuery } from "../schema.ts";
import type { SpriteService } from "../service.ts";
import type { Watches } from "../watches.ts";
import { serveTunnel } from "./tunnel.ts";
import { watchPorts } from "./watch.ts";

export interface PortRouteParts {
  sprites: SpriteService;
  driver: RuntimeDriver;
  watches: Watches;
  clock: Clock;
}

const ROW = {
  ...SPRITE_ROW,
  query: OrgQuery,
  response: { status: 101 },
  errors: ["upgrade_required", "limit_reached", "overloaded"],
} as const;

function notUpgraded(what: string): never {
  fail("upgrade_required", `${what} is a WebSocket`, { headers: { upgrade: "websocket", connection: "upgrade" } });
}

export function portRoutes({ sprites, driver, watches, clock }: PortRouteParts): Row[] {
  const counts = new SessionCounts("tunnels", { per_machine: "tunnels_per_machine", all: "tunnels" });
  return [
    route("GET /v1/sprites/:sprite_name/proxy", {
      ...ROW,
      summary: "Connect to a TCP port of a sprite, over WebSocket",
      description:
        'The first message is `{"host": "localhost", "port": 8000}`, the answer `{"status": "connected", "target": …}` or ' +
        '`{"status": "error", "error": …}`; then binary messages are the bytes. Programs on loopback are reached, too.',
      async handle({ params, ...call }) {
        await sprites.get(orgOf(call).id, params.sprite_name);
        notUpgraded("a tunnel");
      },
      async websocket({ params, ...call }, accept) {
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        await serveTunnel(accept(), sprite, { sprites, driver, counts, clock });
      },
    }),
    route("GET /v1/sprites/:sprite_name/ports/watch", {
      ...ROW,
      summary: "Watch the ports that a sprite listens on, over WebSocket",
      description:
        'The first message is `{"type": "port_list", "ports": […]}`, then come `{"type": "port_opened", "port": 8000, ' +
        '"address": "127.0.0.1", "pid": 7}` and `port_closed`.',
      async handle({ params, ...call }) {
        await sprites.get(orgOf(call).id, params.sprite_name);
        notUpgraded("a watch");
      },
      async websocket({ params, ...call }, accept) {
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        await watches.during(sprite, () => watchPorts(accept(), sprite, { sprites, driver, clock }));
      },
    }),
  ];
}
