import { fail } from "#core/errors.ts";
import { type Row, route } from "#http/route.ts";
import { Tunnels } from "../runtime/tunnels.ts";
import { running } from "./action-routes.ts";
import { machineOf, type RouteParts } from "./routing.ts";
import * as schema from "./schema.ts";

export function tunnelRoutes(parts: RouteParts): Row[] {
  const tunnels = new Tunnels(parts);
  return [
    route("GET /v1/apps/:app_name/machines/:machine_id/tunnel", {
      summary: "A TCP connection to a private port of a machine, over WebSocket",
      description:
        "Binary messages are bytes of the connection, both ways. The text message `" +
        '{"end": true}` says that its sender sends no more; the connection closes when both have. The token comes as ' +
        "for a terminal. Without WebSocket everything is checked all the same, and the answer says what is in the " +
        "way, or `upgrade_required`.",
      part: "machines",
      access: "control machine",
      query: schema.TunnelQuery,
      response: { status: 101 },
      errors: ["wrong_state", "port_unreachable", "limit_reached", "host_unreachable", "upgrade_required"],
      async handle({ query, signal, ...call }) {
        await tunnels.check(running(await machineOf(parts, call)), query.port, signal);
        fail("upgrade_required", "a tunnel is a WebSocket", {
          headers: { upgrade: "websocket", connection: "upgrade" },
          hint: "`hangar proxy` does it",
        });
      },
      async websocket({ query, signal, ...call }, accept) {
        const ref = running(await machineOf(parts, call));
        await tunnels.run(ref, query.port, { signal, accept });
      },
    }),
  ];
}
