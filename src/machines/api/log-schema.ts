/** Queries and responses of the log routes. */
import { Type } from "#http/schema.ts";
import { MACHINE_LIMITS } from "../limits.ts";

const text = Type.String();

export const LogsQuery = Type.Object({
  tail: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MACHINE_LIMITS.logs_page,
      description: "How many of the newest; 100 when left out.",
    }),
  ),
  since: Type.Optional(
    Type.String({
      description:
        "Only what was written after: a time such as `2026-01-31T12:00:00Z`, or how long ago, such as `15m`.",
    }),
  ),
  until: Type.Optional(
    Type.String({ description: "Only what was written before: a time, or how long ago. With this, a search." }),
  ),
  search: Type.Optional(
    Type.String({
      maxLength: MACHINE_LIMITS.logs_search_chars,
      description: "Only lines with all of these words, in upper or lower case.",
    }),
  ),
  level: Type.Optional(
    Type.Union([Type.Literal("error"), Type.Literal("warn"), Type.Literal("info"), Type.Literal("debug")], {
      description: "Only lines of this level, in JSON, logfmt or at the beginning of the text.",
    }),
  ),
  field: Type.Optional(
    Type.Array(text, {
      maxItems: MACHINE_LIMITS.logs_search_fields,
      description:
        "Only JSON lines whose fields are so: `level=error`, `user.id!=7`, `status>=500`. Repeated: all of them.",
    }),
  ),
  order: Type.Optional(
    Type.Union([Type.Literal("newest"), Type.Literal("oldest")], {
      description: "Of a search: `newest` first (default), or `oldest` first, without the last second.",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MACHINE_LIMITS.logs_page,
      description: "Of a search: lines in one response; 100 when left out.",
    }),
  ),
  cursor: Type.Optional(Type.String({ description: "Of a search: goes on after an earlier response, in its order." })),
  follow: Type.Optional(Type.Boolean({ description: "Follow new lines, as a server-sent event stream." })),
});
export const AppLogsQuery = Type.Object({
  ...LogsQuery.properties,
  machine: Type.Optional(Type.String({ description: "Only lines of this machine: its id or name." })),
});
const LogLine = Type.Object({ timestamp: Type.Integer(), stream: text, message: text });
/** Fields of a search only. */
const searched = {
  cursor: Type.Optional(Type.String({ description: "Goes on after these lines; absent when there are no more." })),
  stopped: Type.Optional(
    Type.Union([Type.Literal("time"), Type.Literal("bytes")], {
      description: "The limit (`logs_search_ms`, `logs_search_bytes`) that ended it before `limit` lines were found.",
    }),
  ),
  damaged: Type.Optional(Type.Array(text, { description: "Machines of whose logs a part is damaged." })),
  away: Type.Optional(
    Type.Array(Type.Object({ host_id: text, reason: text }), {
      description: "Hosts that did not respond: lines of their machines are missing.",
    }),
  ),
};
export const LogLines = Type.Object({ lines: Type.Array(LogLine) });
export const LogsResponse = Type.Object({ lines: Type.Array(LogLine), ...searched });
export const AppLogsResponse = Type.Object({
  lines: Type.Array(Type.Object({ ...LogLine.properties, machine_id: text, machine_name: text })),
  ...searched,
  left_out: Type.Optional(
    Type.Integer({
      description:
        "Machines that were not searched, changed longest ago (limit `logs_search_machines`); `machine` names one.",
    }),
  ),
});
