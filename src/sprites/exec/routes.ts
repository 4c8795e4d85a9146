import { type Clock, isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { type Guard, orgOf } from "#http/access.ts";
import { type Exchange, type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { parseSignal, parseTime } from "#machines/api/routing.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import { SPRITE_ROW, WAKE_ERRORS } from "../route-row.ts";
import { OrgQuery } from "../schema.ts";
import type { SpriteService } from "../service.ts";
import { serveControl } from "./control.ts";
import { respondWith } from "./http.ts";
import { execInput, type GivenExec } from "./input.ts";
import { killing } from "./kill.ts";
import type { ExecSession } from "./session.ts";
import type { ExecSessions } from "./sessions.ts";
import { serveSession } from "./websocket.ts";

export interface ExecRouteParts {
  sprites: SpriteService;
  sessions: ExecSessions;
  guard: Pick<Guard, "admit">;
  clock: Clock;
}

const text = Type.String();

const Query = Type.Object({
  ...OrgQuery.properties,
  cmd: Type.Optional(Type.Array(text, { description: "The program and its arguments; a shell when left out." })),
  path: Type.Optional(Type.String({ description: "The program, when `cmd` is left out." })),
  env: Type.Optional(Type.Array(text, { description: "Variables, each as NAME=value." })),
  dir: Type.Optional(Type.String({ description: "The folder to start in, which must exist." })),
  tty: Type.Optional(Type.Boolean()),
  rows: Type.Optional(Type.Integer()),
  cols: Type.Optional(Type.Integer()),
  stdin: Type.Optional(Type.Boolean({ description: "Whether input comes." })),
  detachable: Type.Optional(Type.Boolean({ description: "It runs on without a client." })),
  cc: Type.Optional(text),
  max_run_after_disconnect: Type.Optional(
    Type.String({
      description: "How long it runs without a client: 10s by default, for ever with a terminal or `detachable`.",
    }),
  ),
});

const Sessions = Type.Object({
  sessions: Type.Array(
    Type.Object({
      id: text,
      command: text,
      workdir: text,
      created: text,
      last_activity: text,
      bytes_per_second: Type.Integer(),
      is_active: Type.Boolean({ description: "Whether a client is attached." }),
      tty: Type.Boolean(),
    }),
  ),
});

const shown = (session: ExecSession) => ({
  id: session.id,
  command: session.input.command.join(" "),
  workdir: session.input.folder ?? "",
  created: isoTime(session.created),
  last_activity: isoTime(session.last_activity),
  bytes_per_second: session.bytes_per_second,
  is_active: session.has_clients,
  tty: session.input.tty,
});

function notUpgraded(what: string): never {
  fail("upgrade_required", `${what} is a WebSocket`, { headers: { upgrade: "websocket", connection: "upgrade" } });
}

const MESSAGES =
  "Without a terminal a binary message begins with the number of its stream: 0 input, 1 output, 2 errors, 3 the exit " +
  "code as a byte, which is the last one, 4 the end of the input. With a terminal binary messages are keys and screen, and " +
  '`{"type": "exit", "exit_code": 0}` is the last one. Text messages are JSON: `{"type": "resize", "rows": 24, "cols": ' +
  '80}` and `{"type": "signal", "signal": "SIGTERM"}` to the command; `{"type": "session_info", …}` from it, at first.';

export function execRoutes(parts: ExecRouteParts): Row[] {
  return [...startRoutes(parts), ...sessionRoutes(parts), controlRoute(parts)];
}

function startRoutes(parts: ExecRouteParts): Row[] {
  const { sprites, sessions, clock } = parts;
  return [
    route("GET /v1/sprites/:sprite_name/exec", {
      ...SPRITE_ROW,
      summary: "Run a command in a sprite, over WebSocket; otherwise list the commands that run",
      description: MESSAGES,
      query: Query,
      response: { status: 200, schema: Sessions },
      errors: WAKE_ERRORS,
      async handle({ params, ...call }) {
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        return { sessions: sessions.list(sprite).map(shown) };
      },
      async websocket({ params, query, signal, ...call }, accept) {
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        const session = await sessions.start(sprite, execInput(query), signal);
        await serveSession(accept(), session, { is_owner: true, signal, clock });
      },
    }),
    {
      ...SPRITE_ROW,
      method: "POST",
      path: "/v1/sprites/:sprite_name/exec",
      summary: "Run a command in a sprite, over plain HTTP",
      description:
        "The body is its input, with `stdin`. Each chunk of the answer begins with the number of its stream: 1 output, " +
        "2 errors, 3 the exit code, which is the last one. The query is that of the WebSocket.",
      query: Query,
      response: { status: 200, type: "*/*" },
      errors: WAKE_ERRORS,
      handle: () => Promise.reject(new Error("a relayed request")),
      relay: (exchange) => runOverHttp(parts, exchange),
    },
  ];
}

/** The query of a relayed request, which is not read before. */
function givenOf({ request }: Exchange): { name: string; org_slug: string | undefined; given: GivenExec } {
  const url = new URL(request.url ?? "/", "http://localhost");
  const name = decodeURIComponent(url.pathname.split("/")[3] ?? "");
  const all = (key: string): string[] => url.searchParams.getAll(key);
  const one = Object.fromEntries(url.searchParams);
  const { org_slug, ...given } = { ...one, cmd: all("cmd"), env: all("env") } as GivenExec & { org_slug?: string };
  return { name, org_slug, given: { ...given, tty: false } };
}

async function runOverHttp({ sprites, sessions, guard, clock }: ExecRouteParts, exchange: Exchange): Promise<void> {
  const { request, response, caller } = exchange;
  const { name, org_slug, given } = givenOf(exchange);
  const admit = async (who: typeof caller) => orgOf(await guard.admit(who, SPRITE_ROW.access, { org_slug }));
  const sprite = await sprites.get((await admit(caller)).id, name);
  const signal = exchange.whileAllowed(admit);
  const session = await sessions.start(sprite, execInput(given), signal);
  exchange.takeOver();
  await respondWith(session, { request, response, signal, clock });
}

function sessionRoutes({ sprites, sessions, clock }: ExecRouteParts): Row[] {
  return [
    route("GET /v1/sprites/:sprite_name/exec/:session_id", {
      ...SPRITE_ROW,
      summary: "Attach to a running command, over WebSocket",
      description: `The end of its output comes first, then what it writes. ${MESSAGES}`,
      query: Query,
      response: { status: 101 },
      errors: ["upgrade_required", "limit_reached"],
      async handle({ params, ...call }) {
        sessions.get(await sprites.get(orgOf(call).id, params.sprite_name), params.session_id);
        notUpgraded("a session");
      },
      async websocket({ params, signal, ...call }, accept) {
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        const session = sessions.get(sprite, params.session_id);
        await serveSession(accept(), session, { is_owner: false, signal, clock });
      },
    }),
    route("POST /v1/sprites/:sprite_name/exec/:session_id/kill", {
      ...SPRITE_ROW,
      summary: "End a command: a signal, then SIGKILL; each step is a line of the answer",
      query: Type.Object({
        ...OrgQuery.properties,
        signal: Type.Optional(Type.String({ description: "SIGTERM by default." })),
        timeout: Type.Optional(Type.String({ description: "Time until SIGKILL, such as 10s." })),
      }),
      lines: "always",
      response: { status: 200, type: "*/*" },
      handle: async () => "",
      async stream({ params, query, ...call }) {
        const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
        const signal = parseSignal(query.signal, "query.signal") ?? "SIGTERM";
        const timeout_ms = parseTime(query.timeout, "query.timeout") ?? SPRITE_LIMITS.session_kill_ms;
        if (timeout_ms > SPRITE_LIMITS.session_kill_max_ms)
          fail("invalid_request", "query.timeout is too long (limit session_kill_max_ms)");
        return killing(sessions.get(sprite, params.session_id), { signal, timeout_ms, clock });
      },
    }),
  ];
}

const controlRoute = ({ sprites, sessions }: ExecRouteParts): Row =>
  route("GET /v1/sprites/:sprite_name/control", {
    ...SPRITE_ROW,
    summary: "Run commands over one WebSocket, one after the other",
    description:
      'The text message `control:{"type": "op.start", "op": "exec", "args": {"cmd": ["true"]}}` starts a command, with the ' +
      "arguments of the query of `exec`. Its messages follow, then `control:` and `op.complete` with `exitCode`, or " +
      "`op.error`.",
    query: OrgQuery,
    response: { status: 101 },
    errors: ["upgrade_required"],
    async handle({ params, ...call }) {
      await sprites.get(orgOf(call).id, params.sprite_name);
      notUpgraded("the control connection");
    },
    async websocket({ params, signal, ...call }, accept) {
      const sprite = await sprites.get(orgOf(call).id, params.sprite_name);
      await sprites.activity.during(sprite.id, () => serveControl(accept(), sprite, { sessions, signal }));
    },
  });
