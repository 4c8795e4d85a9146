import { acts, refused, warned } from "#http/field-support.ts";
import { Type } from "#http/schema.ts";
import { Config } from "../config/config-schema.ts";
import { STATES } from "../lifecycle/states.ts";
import { MACHINE_LIMITS } from "../limits.ts";

const text = Type.String();
const flag = Type.Boolean();

const common = {
  name: Type.Optional(acts(text, "Unique in the app; made up when left out. Cannot be changed.")),
  region: Type.Optional(
    acts(Type.String({ maxLength: 32, pattern: "^[a-z0-9-]*$" }), "Where it runs. Cannot be changed."),
  ),
  lease_ttl: Type.Optional(
    acts(
      Type.Integer({ minimum: 0, maximum: MACHINE_LIMITS.lease_max_ttl_s }),
      "Seconds: lease the machine in the same step; `nonce` comes with the answer.",
    ),
  ),
  skip_service_registration: Type.Optional(acts(flag, "Keep it out of request routing, as if created and cordoned.")),
  lsvd: Type.Optional(warned(flag, "there is one kind of disk")),
  min_secrets_version: Type.Optional(
    acts(Type.Integer({ minimum: 0 }), "Boot with at least this version of the app's secrets."),
  ),
  skip_secrets: Type.Optional(warned(flag, "see ignore_app_secrets of a process")),
};

export const CreateMachine = Type.Object({
  ...common,
  skip_launch: Type.Optional(acts(flag, "Make it, do not boot it.")),
  config: acts(Config, "What it is and what it runs."),
});

const updating = {
  ...common,
  skip_launch: Type.Optional(acts(flag, "Do not boot a machine that is not running.")),
  current_version: Type.Optional(acts(text, "The instance_id the update is made for; another one is a conflict.")),
  id: Type.Optional(acts(text, "The machine's own; another one is refused.")),
};
/** Fields of an update or create beside the config. */
export const BesideConfig = Type.Object(updating);
export const UpdateMachine = Type.Object({ ...updating, config: acts(Config, "The whole config.") });
export const PatchMachine = Type.Object({
  ...updating,
  config: acts(Type.Record(text, Type.Unknown()), "A JSON merge patch: null removes."),
});

const ImageRef = Type.Object({
  registry: text,
  repository: text,
  tag: Type.Optional(text),
  digest: text,
  labels: Type.Optional(Type.Record(text, text)),
});

export const EventResponse = Type.Object({
  id: text,
  type: text,
  status: text,
  source: Type.String({ description: "`user`, `proxy`, `host`, `policy`, `schedule` or `standby`." }),
  timestamp: Type.Integer({ description: "Epoch milliseconds." }),
  request: Type.Optional(Type.Record(text, Type.Unknown(), { description: "An exit has `exit_event` here." })),
});

const CheckResponse = Type.Object({
  name: text,
  status: Type.String({ description: "`passing`, `warning` or `critical`." }),
  output: text,
  updated_at: text,
});

const short = {
  id: text,
  name: text,
  state: Type.String({ description: `One of ${STATES.join(", ")}.` }),
  region: text,
  instance_id: text,
  version: Type.String({ description: "The same as instance_id." }),
  private_ip: text,
  image_ref: ImageRef,
  created_at: text,
  updated_at: text,
  cordoned: flag,
};
const HostStatus = Type.String({
  description:
    "`ok`; `unknown` when its host has no recent heartbeat; `unreachable` when the host is lost. Unless `ok`, the state is the last known one.",
});
const long = {
  config: Type.Record(text, Type.Unknown(), { description: "The config as sent, with the full size." }),
  checks: Type.Record(text, CheckResponse, { description: "By the check's name." }),
  events: Type.Array(EventResponse, { description: "Newest first." }),
  host_status: HostStatus,
  waiting: Type.Optional(Type.String({ description: "Why it has not left its host yet; retried automatically." })),
  host: Type.String({ description: "Four hex digits." }),
};
const rare = {
  nonce: Type.Optional(Type.String({ description: "The lease's nonce, while the machine is leased." })),
  lease: Type.Optional(Type.Object({ owner: text, description: text, expires_at: Type.Integer() })),
  warnings: Type.Optional(Type.Array(text, { description: "Warnings about the config." })),
};

export const MachineResponse = Type.Object({ ...short, ...long, ...rare }, { title: "Machine" });
/** A machine in a list; a summary omits the long fields. */
export const ListedMachine = Type.Object({ ...short, ...Type.Partial(Type.Object(long)).properties, ...rare });
export const MachineList = Type.Array(ListedMachine);

export const ListQuery = Type.Object({
  include_deleted: Type.Optional(flag),
  region: Type.Optional(text),
  state: Type.Optional(Type.Array(text, { description: "Repeated, or comma-separated." })),
  summary: Type.Optional(Type.Boolean({ description: "Leave out config, checks, events." })),
  include_leases: Type.Optional(flag),
});

export const OrgListQuery = Type.Object({
  include_deleted: Type.Optional(flag),
  region: Type.Optional(text),
  state: Type.Optional(Type.Array(text)),
  summary: Type.Optional(flag),
  updated_after: Type.Optional(Type.String({ description: "A time: only machines changed since." })),
});

export const OrgList = Type.Object({
  machines: Type.Array(
    Type.Object({
      id: text,
      name: text,
      app_name: text,
      state: text,
      region: text,
      version: text,
      private_ip: text,
      host_status: HostStatus,
      config: Type.Record(text, Type.Unknown()),
      created_at: text,
      updated_at: text,
    }),
  ),
  next_cursor: Type.Optional(text),
  last_machine_id: Type.Optional(text),
  last_updated_at: Type.Optional(text),
  error_regions: Type.Array(text),
});

export const Ok = Type.Object({ ok: flag });
export const GetQuery = Type.Object({ include_leases: Type.Optional(flag) });
export const DeleteQuery = Type.Object({
  force: Type.Optional(Type.Boolean({ description: "Stop it first if it runs: its stop signal, then SIGKILL." })),
  kill: Type.Optional(Type.Boolean({ description: "End it at once if it runs: SIGKILL." })),
});

const Signal = acts(
  Type.Union([text, Type.Integer(), Type.Record(text, Type.Unknown())]),
  "A name such as SIGTERM, or its number; SIGINT when left out.",
);
const Seconds = acts(Type.Union([text, Type.Number({ minimum: 0 })]), "Seconds, or text such as `30s`.");
export const StopBody = Type.Object({
  signal: Type.Optional(Signal),
  timeout: Type.Optional(Seconds),
  id: updating.id,
});
export const RestartQuery = Type.Object({
  force_stop: Type.Optional(Type.Boolean({ description: "Send SIGKILL instead of the stop signal." })),
  timeout: Type.Optional(text),
  signal: Type.Optional(text),
});
export const MoveBody = Type.Object({
  host_id: Type.Optional(
    Type.String({
      description: "Target host; the one with most free capacity in its region when left out.",
      maxLength: 16,
    }),
  ),
});

export const MoveResponse = Type.Object({
  ok: Type.Boolean(),
  state: Type.String(),
  from: Type.String({ description: "The host it leaves." }),
});

export const SignalBody = Type.Object({ signal: Signal });
export const StartResponse = Type.Object({ previous_state: text, migrated: flag, new_host: text });

export const WaitQuery = Type.Object({
  state: Type.Optional(
    Type.Array(text, {
      description: "`started` when left out; any state, `settled` or `healthy`; repeated, or comma-separated.",
    }),
  ),
  instance_id: Type.Optional(Type.String({ description: "Required when waiting for `stopped`." })),
  version: Type.Optional(Type.String({ description: "The same as instance_id." })),
  from_event_id: Type.Optional(Type.String({ description: "Only events after this one count." })),
  timeout: Type.Optional(Type.String({ description: "Seconds, 60 when left out." })),
});
export const WaitResponse = Type.Object({ ok: flag, state: text, version: text, event_id: text });

export const LeaseQuery = Type.Object({
  ttl: Type.Optional(Type.Integer({ minimum: 1, maximum: MACHINE_LIMITS.lease_max_ttl_s })),
  description: Type.Optional(Type.String({ maxLength: MACHINE_LIMITS.lease_description_chars })),
  wait: Type.Optional(Type.Integer({ minimum: 0, description: "Seconds to queue for the lease when it is held." })),
});
export const LeaseBody = Type.Object({
  ttl: Type.Optional(
    acts(Type.Integer({ minimum: 1, maximum: MACHINE_LIMITS.lease_max_ttl_s }), "Seconds; 30 when left out."),
  ),
  description: Type.Optional(
    acts(
      Type.String({ maxLength: MACHINE_LIMITS.lease_description_chars }),
      "Shown to callers that find the machine leased.",
    ),
  ),
});
export const LeaseResponse = Type.Object({
  status: text,
  data: Type.Object({
    nonce: text,
    expires_at: Type.Integer({ description: "Epoch seconds." }),
    owner: text,
    description: text,
    version: text,
  }),
});
export const ReleaseResponse = Type.Object({ status: text, data: Ok });

export const MetadataMap = Type.Record(text, text);
export const MetadataValue = Type.Object({ value: text });
export const MetadataChange = Type.Object({
  metadata: Type.Record(text, Type.Union([text, Type.Null()]), { description: "An empty text or null removes." }),
  machine_version: Type.Optional(text),
  updated_at: Type.Optional(text),
});

export const ExecBody = Type.Object({
  command: Type.Optional(acts(Type.Array(text), "The program and its arguments.")),
  cmd: Type.Optional(acts(text, "One line, split at blanks and quotes.")),
  stdin: Type.Optional(acts(text, "What it reads.")),
  container: Type.Optional(refused(text, "a machine has no containers")),
  timeout: Type.Optional(acts(Type.Integer({ minimum: 0 }), "Seconds, 60 when left out.")),
});
export const ExecResponse = Type.Object({
  exit_code: Type.Integer(),
  exit_signal: Type.Optional(Type.Integer()),
  stdout: text,
  stderr: text,
});
export const ProcessList = Type.Array(
  Type.Object({
    pid: Type.Integer(),
    stime: Type.Number(),
    rtime: Type.Number(),
    command: text,
    directory: text,
    cpu: Type.Number(),
    rss: Type.Number(),
    listen_sockets: Type.Array(Type.Object({ proto: text, address: text })),
  }),
);
const side = Type.Integer({ minimum: 1, maximum: MACHINE_LIMITS.terminal_side });
export const TerminalQuery = Type.Object({
  command: Type.Optional(Type.Array(text, { description: "The program and its arguments; a shell when left out." })),
  rows: Type.Optional(side),
  cols: Type.Optional(side),
  term: Type.Optional(Type.String({ pattern: "^[a-zA-Z0-9._+-]{1,64}$", description: "The variable TERM." })),
});

export const TunnelQuery = Type.Object({
  port: Type.Integer({ minimum: 1, maximum: 65_535, description: "The TCP port inside the machine." }),
});

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
  follow: Type.Optional(Type.Boolean({ description: "Follow new lines, as a server-sent event stream." })),
});
const LogLine = Type.Object({ timestamp: Type.Integer(), stream: text, message: text });
export const LogsResponse = Type.Object({ lines: Type.Array(LogLine) });
export const AppLogsResponse = Type.Object({
  lines: Type.Array(Type.Object({ ...LogLine.properties, machine_id: text, machine_name: text })),
});
export const VersionList = Type.Array(
  Type.Object({ version: text, created_at: text, user_config: Type.Record(text, Type.Unknown()) }),
);

export const MachineEventsQuery = Type.Object({
  from_event_id: Type.Optional(Type.String({ description: "Only events after this one." })),
});
export const MachineEvents = Type.Array(EventResponse);
export const LogQuery = Type.Object({
  cursor: Type.Optional(
    Type.Integer({ minimum: 0, description: "Events after this place; a stream begins now, a page at the start." }),
  ),
  tail: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MACHINE_LIMITS.events_page,
      description: "Instead of a cursor: begin this many events before the end of the organization's log.",
    }),
  ),
});
export const LogEvent = Type.Object({
  ...EventResponse.properties,
  cursor: Type.Integer(),
  app_name: text,
  machine_id: text,
  machine_name: text,
  instance_id: text,
});
export const LogPage = Type.Object({ events: Type.Array(LogEvent), cursor: Type.Integer() });
