import { fail } from "#core/errors.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { refOf } from "../lifecycle/phases.ts";
import { refuseOtherId } from "../lifecycle/rules.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { Ref } from "../runtime/driver.ts";
import type { Machine } from "../types.ts";
import { actorOf, bad, machineOf, parseSignal, parseTime, type RouteParts } from "./routing.ts";
import * as schema from "./schema.ts";

const CHANGES = ["lease_held", "lease_lost", "wrong_state", "host_unreachable", "conflict"] as const;

export function actionRoutes(parts: RouteParts): Row[] {
  return [...lifeRoutes(parts), moveRoute(parts), ...cordonRoutes(parts), ...insideRoutes(parts)];
}

function lifeRoutes(parts: RouteParts): Row[] {
  const { machines } = parts;
  return [
    route("POST /v1/apps/:app_name/machines/:machine_id/start", {
      summary: "Start a machine; a running one is left alone",
      part: "machines",
      access: "control machine",
      response: { status: 200, schema: schema.StartResponse },
      errors: [...CHANGES, "insufficient_capacity"],
      async handle(call) {
        const { id } = await machineOf(parts, call);
        const { before } = await machines.start(id, actorOf(call));
        return { previous_state: before, migrated: false, new_host: "" };
      },
    }),
    route("POST /v1/apps/:app_name/machines/:machine_id/stop", {
      summary: "Stop a machine: its stop signal, then SIGKILL",
      part: "machines",
      access: "control machine",
      body: schema.StopBody,
      response: { status: 200, schema: schema.Ok },
      errors: CHANGES,
      async handle({ body, ...call }) {
        const machine = await machineOf(parts, call);
        refuseOtherId(machine, body.id);
        await machines.stop(machine.id, stopOptionsOf(body, "body"), actorOf(call));
        return { ok: true };
      },
    }),
    route("POST /v1/apps/:app_name/machines/:machine_id/suspend", {
      summary: "Suspend a running machine with its memory; stopped where that is impossible",
      part: "machines",
      access: "control machine",
      response: { status: 200, schema: schema.Ok },
      errors: CHANGES,
      async handle(call) {
        const { id } = await machineOf(parts, call);
        await machines.suspend(id, actorOf(call));
        return { ok: true };
      },
    }),
    route("POST /v1/apps/:app_name/machines/:machine_id/restart", {
      summary: "Stop and start a machine",
      part: "machines",
      access: "control machine",
      query: schema.RestartQuery,
      response: { status: 200, schema: schema.Ok },
      errors: [...CHANGES, "insufficient_capacity"],
      async handle({ query, ...call }) {
        const { id } = await machineOf(parts, call);
        const how = query.force_stop ? { signal: "SIGKILL", timeout_ms: 0 } : stopOptionsOf(query, "query");
        await machines.restart(id, how, actorOf(call));
        return { ok: true };
      },
    }),
  ];
}

function moveRoute(parts: RouteParts): Row {
  return route("POST /v1/apps/:app_name/machines/:machine_id/move", {
    summary: "Move a machine to another host: stopped here, started there, with a new address and a clean root",
    part: "machines",
    access: "control machine",
    body: schema.MoveBody,
    response: { status: 200, schema: schema.MoveResponse },
    errors: [...CHANGES, "insufficient_capacity", "not_movable"],
    async handle({ body, ...call }) {
      const before = await machineOf(parts, call);
      const { state } = await parts.relocation.move(before.id, body, actorOf(call));
      return { ok: true, state, from: before.host_id };
    },
  });
}

function stopOptionsOf(
  { signal, timeout }: { signal?: unknown; timeout?: string | number },
  path: string,
): { signal?: string; timeout_ms?: number } {
  const name = parseSignal(signal, `${path}.signal`);
  const timeout_ms = parseTime(timeout, `${path}.timeout`);
  if (timeout_ms !== undefined && timeout_ms > MACHINE_LIMITS.stop_timeout_max_ms) {
    bad(`${path}.timeout`, `is longer than ${MACHINE_LIMITS.stop_timeout_max_ms / 1000} s (limit stop_timeout_max_ms)`);
  }
  return { ...(name ? { signal: name } : {}), ...(timeout_ms === undefined ? {} : { timeout_ms }) };
}

function cordonRoutes(parts: RouteParts): Row[] {
  const cordon = (verb: "cordon" | "uncordon", summary: string): Row =>
    route(`POST /v1/apps/:app_name/machines/:machine_id/${verb}`, {
      summary,
      part: "machines",
      access: "write machine",
      response: { status: 200, schema: schema.Ok },
      errors: CHANGES,
      async handle(call) {
        const { id } = await machineOf(parts, call);
        await parts.machines.cordon(id, verb === "cordon", actorOf(call));
        return { ok: true };
      },
    });
  return [
    cordon("cordon", "Send no more requests to a machine; its state stays"),
    cordon("uncordon", "Send requests to a machine again"),
  ];
}

/** Routes that need a running machine: exec, processes, signals. */
function insideRoutes(parts: RouteParts): Row[] {
  const { driver } = parts;
  return [
    route("POST /v1/apps/:app_name/machines/:machine_id/signal", {
      summary: "Send a signal to a machine's first process",
      part: "machines",
      access: "control machine",
      body: schema.SignalBody,
      response: { status: 200, schema: schema.Ok },
      errors: ["wrong_state"],
      async handle({ body, ...call }) {
        const name = parseSignal(body.signal, "body.signal") ?? bad("body.signal", "is required");
        await driver.signal(running(await machineOf(parts, call)), name);
        return { ok: true };
      },
    }),
    route("POST /v1/apps/:app_name/machines/:machine_id/exec", {
      summary: "Run a command in a machine and wait for it",
      part: "machines",
      access: "control machine",
      body: schema.ExecBody,
      response: { status: 200, schema: schema.ExecResponse },
      errors: ["wrong_state"],
      async handle({ body, signal, ...call }) {
        const command = body.command?.length ? body.command : splitWords(body.cmd ?? "");
        if (command.length === 0) bad("body.command", "is required");
        const ref = running(await machineOf(parts, call));
        const seconds = Math.min(body.timeout || MACHINE_LIMITS.exec_default_s, MACHINE_LIMITS.exec_max_s);
        const exec = {
          command,
          timeout_ms: seconds * 1000,
          ...(body.stdin === undefined ? {} : { stdin: body.stdin }),
        };
        return await driver.exec(ref, exec, signal);
      },
    }),
    route("GET /v1/apps/:app_name/machines/:machine_id/ps", {
      summary: "The processes of a machine",
      part: "machines",
      access: "read machine",
      pages: inPages("", ["number"]),
      response: { status: 200, schema: schema.ProcessList },
      errors: ["wrong_state"],
      async handle({ page, ...call }) {
        return page.of(await driver.ps(running(await machineOf(parts, call))), ({ pid }) => [pid]);
      },
    }),
  ];
}

/** Returns the reference to the machine's boot; throws if it is not running. */
export function running(machine: Machine): Ref {
  const ref = machine.state === "started" ? refOf(machine) : undefined;
  return (
    ref ??
    fail("wrong_state", `machine ${machine.id} is ${machine.state}; it must be started`, {
      facts: { current_state: machine.state },
    })
  );
}

/** Splits a command line at spaces; quoted text stays one argument. */
function splitWords(line: string): string[] {
  const args = line.match(/(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+/g) ?? [];
  return args.map((word) =>
    word.replaceAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|\\(.)/g, (_, double?: string, single?: string, escaped?: string) =>
      double === undefined ? (single ?? escaped ?? "") : double.replaceAll(/\\(.)/g, "$1"),
    ),
  );
}
