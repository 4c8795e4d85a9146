import { isoTime } from "#core/clock.ts";
import { Type } from "#http/schema.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { Run } from "../runs/types.ts";

const Nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
const NullableInteger = (description: string) => Type.Union([Type.Integer(), Type.Null()], { description });
const State = Type.Union(
  [
    Type.Literal("running"),
    Type.Literal("complete"),
    Type.Literal("failed"),
    Type.Literal("stopped"),
    Type.Literal("skipped"),
  ],
  { description: "`stopped`: by a request; `skipped`: it was due while the run before it had not ended." },
);

export const RunResponse = Type.Object({
  id: Type.String(),
  kind: Type.Union([Type.Literal("once"), Type.Literal("schedule"), Type.Literal("release")]),
  state: State,
  command: Type.String({ description: "The command's arguments, joined with spaces; empty for the image's own." }),
  image: Type.String(),
  machine_id: Type.String(),
  machine_name: Type.String(),
  instance_id: Type.String({ description: "The version of the machine's config." }),
  started_by: Type.String({ description: "The name of a token, or `schedule`, `policy`, `host`, `proxy`, `standby`." }),
  started_at: Type.String(),
  ended_at: Nullable("When it ended."),
  duration_ms: NullableInteger("How long it took."),
  exit_code: NullableInteger("Of the program; 128 plus its number for a signal."),
  signal: NullableInteger("The signal that ended it."),
  oom_killed: Type.Boolean({ description: "Whether it ran out of memory." }),
  error: Nullable("Why it failed, when no exit code says so."),
});

export const RunList = Type.Object({ runs: Type.Array(RunResponse) });

export const RunsQuery = Type.Object({
  machine_id: Type.Optional(Type.String({ maxLength: 64 })),
  state: Type.Optional(State),
});

const LINES = Type.Integer({
  minimum: 0,
  maximum: MACHINE_LIMITS.logs_page,
  description: `How many of the newest; ${MACHINE_LIMITS.logs_page} when left out.`,
});
export const RunLogsQuery = Type.Object({
  tail: Type.Optional(LINES),
  follow: Type.Optional(
    Type.Boolean({ description: "All lines as they come, and then the run that has ended, as server-sent events." }),
  ),
});

export function runResponse(run: Run) {
  const { started_at, ended_at } = run;
  return {
    id: run.id,
    kind: run.kind,
    state: run.state,
    command: run.command,
    image: run.image,
    machine_id: run.machine_id,
    machine_name: run.machine_name,
    instance_id: run.instance_id,
    started_by: run.started_by,
    exit_code: run.exit_code,
    signal: run.signal,
    oom_killed: run.oom_killed,
    error: run.error,
    started_at: isoTime(started_at),
    ended_at: ended_at === null ? null : isoTime(ended_at),
    duration_ms: ended_at === null ? null : Math.max(0, ended_at - started_at),
  };
}
