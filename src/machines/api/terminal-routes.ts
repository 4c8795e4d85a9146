import { fail } from "#core/errors.ts";
import { type Row, route } from "#http/route.ts";
import { Terminals } from "../runtime/terminals.ts";
import { running } from "./action-routes.ts";
import { machineOf, type RouteParts } from "./routing.ts";
import * as schema from "./schema.ts";

export function terminalRoutes(parts: RouteParts): Row[] {
  const terminals = new Terminals(parts);
  return [
    route("GET /v1/apps/:app_name/machines/:machine_id/terminal", {
      summary: "A terminal into a machine, over WebSocket",
      description:
        "Binary messages are keys one way and the screen the other. Text messages are JSON: " +
        '`{"resize": {"rows": 24, "cols": 80}}` and `{"signal": "SIGTERM"}` to the machine, `{"ended": {"exit_code": 0}}` ' +
        "from it, as the last one. The token comes as always, or, from a browser, as the protocol `hangar.token.` and " +
        "the token in base64url, next to the protocol `hangar`. Without WebSocket everything is checked all the same, " +
        "and the answer says what is in the way, or `upgrade_required`.",
      part: "machines",
      access: "control machine",
      query: schema.TerminalQuery,
      response: { status: 101 },
      errors: ["wrong_state", "limit_reached", "host_unreachable", "upgrade_required"],
      async handle(call) {
        const { id } = running(await machineOf(parts, call));
        terminals.check(id);
        // Finds the reason of the failure: this call fails too when the machine's host does not respond.
        await parts.driver.logs(id, { tail: 1 });
        fail("upgrade_required", "a terminal is a WebSocket", {
          headers: { upgrade: "websocket", connection: "upgrade" },
          hint: "`hangar ssh` does it",
        });
      },
      async websocket({ query, signal, ...call }, accept) {
        const ref = running(await machineOf(parts, call));
        const { command = [], ...rest } = query;
        await terminals.run(ref, { ...rest, command }, { signal, accept });
      },
    }),
  ];
}
