/** An app's log lines in pages, as `fly logs` polls for them. */
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { PlatformRows } from "./calls.ts";

interface Line {
  timestamp: number;
  stream: string;
  message: string;
  machine_id?: string;
}

/** A token is the time of the last line, and how many lines of that time were already sent. */
function readToken(token: string): { at: number; sent: number } | undefined {
  const [, at, sent] = /^(\d{1,16})\.(\d{1,9})$/.exec(token) ?? [];
  return at === undefined ? undefined : { at: Number(at), sent: Number(sent) };
}

function tokenAfter(lines: readonly Line[], before: ReturnType<typeof readToken>): string {
  const last = lines.at(-1);
  if (!last) return before ? `${before.at}.${before.sent}` : "";
  const same = lines.filter(({ timestamp }) => timestamp === last.timestamp).length;
  const again = before?.at === last.timestamp ? before.sent : 0;
  return `${last.timestamp}.${same + again}`;
}

export const logRoute = (rows: PlatformRows): Row =>
  route("GET /api/v1/apps/:app_name/logs", {
    summary: "Log lines of an app since the last page",
    part: "platform",
    access: "any",
    query: Type.Object({
      next_token: Type.Optional(Type.String()),
      instance: Type.Optional(Type.String()),
      region: Type.Optional(Type.String()),
    }),
    response: { status: 200, schema: Type.Unknown() },
    async handle(call) {
      const { app_name } = call.params;
      const { next_token = "", instance = "" } = call.query;
      const before = readToken(next_token);
      const query = {
        tail: before ? 1000 : 100,
        // The row returns lines after a time; further lines of that time itself may still arrive.
        ...(before ? { since: new Date(before.at - 1).toISOString() } : {}),
      };
      const params = { app_name, ...(instance ? { machine_id: instance } : {}) };
      const target = instance ? "GET /v1/apps/:app_name/machines/:machine_id/logs" : "GET /v1/apps/:app_name/logs";
      const { lines } = await rows.value<{ lines: Line[] }>(target, { params, query }, call);
      const fresh = before ? unseen(lines, before) : lines;
      return {
        data: fresh.map((line, index) => entryOf(line, instance, index)),
        meta: { next_token: tokenAfter(fresh, before) },
      };
    },
  });

function unseen(lines: readonly Line[], { at, sent }: { at: number; sent: number }): Line[] {
  const later = lines.filter(({ timestamp }) => timestamp >= at);
  return later.slice(Math.min(sent, later.filter(({ timestamp }) => timestamp === at).length));
}

function entryOf({ timestamp, stream, message, machine_id }: Line, instance: string, index: number): object {
  const id = machine_id ?? instance;
  return {
    id: `${timestamp}-${id}-${index}`,
    attributes: {
      timestamp: new Date(timestamp).toISOString(),
      message,
      level: stream === "stderr" ? "error" : "info",
      instance: id,
      region: "",
      meta: { instance: id, region: "", event: { provider: "app" }, http: null, error: null, url: null },
    },
  };
}
