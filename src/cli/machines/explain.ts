/** Explains a machine's state from its events, its config and the services of the edge proxy. */
import type { Machine, MachineConfig } from "#client/api.ts";
import { systemClock } from "#core/clock.ts";
import { NO_LIMIT } from "#core/machine-settings.ts";
import { instant } from "../metrics/ask.ts";
import { egressText } from "../network/egress.ts";
import { ago } from "../output.ts";
import type { Context, Input, Verb } from "../verb.ts";
import { APP, findMachine, MACHINE, readMachine } from "./find.ts";

type Services = Awaited<ReturnType<typeof readServices>>;
type Facts = { machine_io?: string };
type Event = Machine["events"][number];

/** One fact about the machine, with a command to try where there is one. */
interface Reason {
  about: "state" | "restart" | "starts" | "checks" | "traffic" | "lease" | "host" | "egress" | "disk";
  text: string;
  try?: string;
}

export const machinesExplain: Verb = {
  words: "machines explain",
  summary: "Explain a machine's state, what would start it, and how it is reached",
  arguments: [MACHINE],
  options: [APP],
  completes: "machines",
  examples: ["hangar machines explain $MACHINE"],
  async run(context, input) {
    const found = await findMachine(context, input);
    const machine = await readMachine(context, found);
    const services = await readServices(context, found.params.app_name);
    const reasons = [
      ...explain(machine, found.params.app_name, services, systemClock.now()),
      ...(await egressReasons(context, input, machine, found.params.app_name)),
      ...(await diskReason(context)),
    ];
    const lines = reasons.map((reason) => `${reason.about.padEnd(8)} ${reason.text}${hint(reason)}`);
    return { data: { id: machine.id, name: machine.name, state: machine.state, reasons }, text: lines.join("\n") };
  },
};

const hint = (reason: Reason): string => (reason.try ? `\n${" ".repeat(9)}try: ${reason.try}` : "");

const readServices = ({ client }: Context, app_name: string) =>
  client.call("GET /v1/apps/:app_name/services", { params: { app_name } });

/** What may happen on a host that sends no heartbeats. */
const hostWords = ({ state }: Machine, { metadata }: MachineConfig): string =>
  metadata?.["hangar_on_host_loss"] === "move"
    ? "it is frozen there, and starts on another host when its host is lost"
    : `it was ${state} at the last heartbeat, and keeps running there unless the host is down or another machine is its standby`;

function explain(machine: Machine, app_name: string, services: Services, now_ms: number): Reason[] {
  const config = machine.config as unknown as MachineConfig;
  return [
    stateReason(machine, now_ms),
    ...restartReason(machine, config),
    ...startReasons(machine, config),
    ...checkReasons(machine),
    ...trafficReasons(machine, app_name, config, services),
    ...leaseReason(machine, now_ms),
    ...(machine.host_status === "ok"
      ? []
      : [
          {
            about: "host" as const,
            text: `its host ${machine.host} is ${machine.host_status}: ${hostWords(machine, config)}`,
          },
        ]),
    ...(machine.waiting === undefined
      ? []
      : [{ about: "host" as const, text: `it must leave its host and waits for capacity: ${machine.waiting}` }]),
  ];
}

/** Descriptions of the `source` of an event. */
const WHO: Record<string, string> = {
  user: "a user requested it",
  proxy: "the edge proxy: the machine was idle, or a request arrived",
  host: "its host reported it",
  policy: "its restart policy",
  schedule: "its schedule",
  standby: "the machine that it is a standby of failed",
};

function stateReason(machine: Machine, now_ms: number): Reason {
  const last = machine.events.find(({ status }) => status === machine.state) ?? machine.events[0];
  if (!last) return { about: "state", text: `it is ${machine.state}, and has no events yet` };
  const since = ago(last.timestamp, now_ms);
  // The host only reports results: the cause is in the events before, newest first.
  const before = machine.events.slice(machine.events.indexOf(last));
  const cause = before.find((event) => exitText(event) ?? errorText(event)) ?? last;
  const requested = before.find(({ source }) => source !== "host") ?? last;
  const recent = before.indexOf(cause) <= before.indexOf(requested) ? cause : requested;
  const why = exitText(recent) ?? errorText(recent) ?? WHO[requested.source] ?? `by ${requested.source}`;
  const text = `it is ${machine.state} since ${since}: ${why}`;
  return machine.state === "failed"
    ? { about: "state", text, try: `hangar machines logs ${machine.id}, then hangar machines start ${machine.id}` }
    : { about: "state", text };
}

function exitText(event: Event | undefined): string | undefined {
  const exit = event?.request?.["exit_event"] as
    | { exit_code: number; oom_killed: boolean; oom?: Oom; requested_stop: boolean; signal: number }
    | undefined;
  if (!exit) return undefined;
  if (exit.oom_killed) return oomText(exit.oom);
  if (exit.requested_stop) return (event && errorText(event)) ?? "a stop was requested";
  const by = exit.signal > 0 ? `, by signal ${exit.signal}` : "";
  return `its program ended with exit code ${exit.exit_code}${by}`;
}

interface Oom {
  process: string;
  memory: string;
}

function oomText({ process, memory }: Oom = { process: "its program", memory: "machine" }): string {
  if (memory === "host") return `${process} was killed because the host's memory was full (hangar hosts list)`;
  return `${process} was killed because its memory was full (give it more with --memory)`;
}

function errorText({ request }: Event): string | undefined {
  const text = request?.["error"] ?? request?.["reason"];
  return typeof text === "string" ? text : undefined;
}

function restartReason({ state }: Machine, { restart }: MachineConfig): Reason[] {
  if (state !== "stopped" && state !== "failed") return [];
  const policy = restart?.policy || "on-failure";
  const descriptions: Record<string, string> = {
    no: "its restart policy is `no`: it does not restart",
    "on-failure": `its restart policy is \`on-failure\`: it restarts when its program fails, ${restart?.max_retries ?? 10} times`,
    always: "its restart policy is `always`: it restarts when its program exits",
  };
  return [{ about: "restart", text: descriptions[policy] ?? policy }];
}

function startReasons({ id, state, cordoned }: Machine, config: MachineConfig): Reason[] {
  if (state === "started") return [];
  const woken = (config.services ?? []).some(({ autostart }) => autostart);
  const said: Reason[] = [
    ...(woken && !cordoned ? [{ about: "starts" as const, text: "a request to one of its services starts it" }] : []),
    ...(config.schedule ? [{ about: "starts" as const, text: `its schedule starts it: ${config.schedule}` }] : []),
    ...(config.standbys?.length
      ? [{ about: "starts" as const, text: `it is a standby, and starts when ${config.standbys.join(" or ")} fails` }]
      : []),
  ];
  if (said.length > 0) return said;
  return [{ about: "starts", text: "only a user starts it", try: `hangar machines start ${id}` }];
}

function checkReasons({ checks }: Machine): Reason[] {
  const bad = Object.entries(checks).filter(([, { status }]) => status !== "passing");
  return bad.map(([name, { status, output }]) => ({ about: "checks", text: `${name} is ${status}: ${output}` }));
}

function trafficReasons(
  { id, cordoned }: Machine,
  app_name: string,
  config: MachineConfig,
  { open, services }: Services,
): Reason[] {
  if ((config.services ?? []).length === 0)
    return [{ about: "traffic", text: "it has no services: it cannot be reached from outside" }];
  if (!open) {
    const give = `hangar ips allocate ${app_name}`;
    return [{ about: "traffic", text: `the app ${app_name} has no address, so it is closed`, try: give }];
  }
  if (cordoned)
    return [{ about: "traffic", text: "it is cordoned: it gets no requests", try: `hangar machines uncordon ${id}` }];
  return services.flatMap(({ urls, problems, machines }) =>
    machines
      .filter((one) => one.id === id)
      .flatMap((one): Reason[] => [
        {
          about: "traffic",
          text: `${urls[0] ?? "?"} routes to its port ${one.internal_port}: ${servingText(one)}`,
        },
        ...problems.map((text): Reason => ({ about: "traffic", text })),
      ]),
  );
}

/** Its egress policy, and its recently denied connections. */
async function egressReasons(context: Context, input: Input, machine: Machine, app_name: string): Promise<Reason[]> {
  const params = { app_name };
  const policy = await context.client.call("GET /v1/apps/:app_name/egress", { params });
  const { organization } = await context.client.call("GET /v1/apps/:app_name", { params });
  const ofOrg = { ...input, options: { ...input.options, org: organization.slug } };
  const [first, ...rest] = egressText(policy).split("\n");
  const denied = async (metric: string): Promise<number> => {
    const query = `sum(increase(${metric}{instance="${machine.instance_id}"}[15m]))`;
    // Metrics may be unavailable or not allowed for this token: the other facts are still shown.
    const found = await instant(context, ofOrg, query).catch(() => []);
    return Math.round(Number(found[0]?.value?.[1] ?? 0));
  };
  const [closed, refused] = await Promise.all([
    denied("svc_instance_egress_denied_count"),
    denied("svc_instance_connections_refused_count"),
  ]);
  return [
    { about: "egress", text: [first, ...rest.map((entry) => entry.trim())].join(" ") },
    ...(closed > 0 ? [deniedReason(app_name, closed)] : []),
    ...(refused > 0
      ? [
          {
            about: "egress" as const,
            text: `${refused} packets were dropped in 15 minutes: too many open connections (limit connections_per_machine)`,
          },
        ]
      : []),
  ];
}

/** The I/O limit of its disks; nothing without a limit, or where this token may not read it. */
async function diskReason({ client }: Context): Promise<Reason[]> {
  const { machine_io = NO_LIMIT } = await client.call("GET /v1/platform/facts", {}).catch(() => ({}) as Facts);
  if (machine_io === NO_LIMIT) return [];
  return [{ about: "disk", text: `the operator limits the I/O of each of its disks: ${machine_io}` }];
}

const deniedReason = (app_name: string, count: number): Reason => ({
  about: "egress",
  text: `${count} packets were denied in 15 minutes: they went where the policy does not allow, or to a closed range`,
  try: `hangar egress show ${app_name}; closed ranges are opened by the operator (HANGAR_EGRESS_ALLOW)`,
});

type Served = Services["services"][number]["machines"][number];

function servingText({ serving, problem, in_progress, soft_limit, state, autostart }: Served): string {
  if (problem !== undefined) return `requests fail: ${problem}`;
  if (serving) return `it serves, ${in_progress} of ${soft_limit} in progress`;
  return `it does not serve while it is ${state}${autostart ? ", and a request starts it" : ""}`;
}

function leaseReason({ lease }: Machine, now_ms: number): Reason[] {
  if (!lease) return [];
  const seconds = Math.max(0, Math.round(lease.expires_at - now_ms / 1000));
  return [
    {
      about: "lease",
      text: `${lease.owner} holds its lease for ${seconds} s more (${lease.description || "no description"}): others may not change it`,
    },
  ];
}
