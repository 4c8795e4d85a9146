import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { CallHandlers, Channel, StreamHandlers } from "#hosts/channel.ts";
import type { HostService } from "#hosts/service.ts";
import type { LogFound, LogSearch } from "#machines/logs/search.ts";
import type {
  Exec,
  ExecResult,
  LogPage,
  LogsFrom,
  Process,
  ProgramOptions,
  Ref,
  RuntimeDriver,
  TerminalOptions,
} from "#machines/runtime/driver.ts";
import { relayProcess, remoteProcess } from "#machines/runtime/processes.ts";
import { remoteTerminal } from "#machines/runtime/remote-terminal.ts";
import { relayTerminal } from "#machines/runtime/terminals.ts";
import { relayTunnel, remoteConnection } from "#machines/runtime/tunnels.ts";
import type { MachineStore } from "#machines/store.ts";

/** Driver calls that are forwarded to a machine's host. All others are made by the executor of that host. */
const INSIDE = ["signal", "exec", "terminal", "process", "connect", "ps", "listening", "logs", "searchLogs"] as const;

interface RemoteParts {
  /** Runs this process's own machines and resolves images; without machines it only resolves. */
  local: RuntimeDriver;
  hosts: HostService;
  store: Pick<MachineStore, "find">;
  channel: Channel;
}

/** The driver as the API uses it: local machines directly, others through their host's channel. */
export function remoteDriver(parts: RemoteParts): RuntimeDriver {
  const { local, hosts, channel } = parts;
  const own = new Set(hosts.own);
  const doorOf = async (id: string, known?: string): Promise<string | undefined> => {
    const host_id = known ?? (await parts.store.find(id))?.host_id;
    if (host_id === undefined || own.has(host_id)) return undefined;
    const host = await hosts.find(host_id);
    if (host.state === "ok" && host.address !== "") return host.address;
    fail("host_unreachable", `machine ${id} is on host ${host_id}, which cannot be reached`, { retry_after_s: 5 });
  };
  const through = async <Answer>(
    id: string,
    call: string,
    body: unknown,
    here: () => Promise<Answer>,
    signal?: AbortSignal,
  ) => {
    const address = await doorOf(id);
    return address === undefined ? await here() : ((await channel.call(address, call, body, signal)) as Answer);
  };
  const inside: Pick<RuntimeDriver, (typeof INSIDE)[number]> = {
    signal: (ref, name) => through(ref.id, "signal", { ref, name }, () => local.signal(ref, name)),
    exec: (ref, command, signal) =>
      through<ExecResult>(ref.id, "exec", { ref, command }, () => local.exec(ref, command, signal), signal),
    async terminal(ref, wanted, signal) {
      const address = await doorOf(ref.id);
      if (address === undefined) return await local.terminal(ref, wanted, signal);
      return remoteTerminal(await channel.stream(address, "terminal", { ref, wanted }, signal));
    },
    async process(ref, wanted, signal) {
      const address = await doorOf(ref.id);
      if (address === undefined) return await local.process(ref, wanted, signal);
      return remoteProcess(await channel.stream(address, "process", { ref, wanted }, signal));
    },
    async connect(ref, port, signal) {
      const address = await doorOf(ref.id);
      if (address === undefined) return await local.connect(ref, port, signal);
      return remoteConnection(await channel.stream(address, "connect", { ref, port }, signal));
    },
    ps: (ref) => through<Process[]>(ref.id, "ps", { ref }, () => local.ps(ref)),
    listening: (ref) => through(ref.id, "listening", { ref }, () => local.listening(ref)),
    async logs(id, from, host_id) {
      const address = await doorOf(id, host_id);
      return address === undefined
        ? await local.logs(id, from)
        : ((await channel.call(address, "logs", { id, from })) as LogPage);
    },
    async searchLogs(search, host_id, signal) {
      const address = await doorOf(search.ids[0] ?? "", host_id);
      return address === undefined
        ? await local.searchLogs(search, host_id, signal)
        : ((await channel.call(address, "searchLogs", { search }, signal)) as LogFound);
    },
  };
  return new Proxy(local, {
    get(target, name) {
      if (name in inside) return inside[name as keyof typeof inside];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value as () => unknown).bind(target) : value;
    },
  });
}

/** The server side: calls that a host accepts from holders of the platform's key. */
export function machineCalls(driver: RuntimeDriver): CallHandlers {
  return {
    signal: async (body) => {
      const { ref, name } = body as { ref: Ref; name: string };
      await driver.signal(ref, name);
    },
    exec: async (body, signal) => {
      const { ref, command } = body as { ref: Ref; command: Exec };
      return await driver.exec(ref, command, signal);
    },
    ps: async (body) => await driver.ps((body as { ref: Ref }).ref),
    listening: async (body) => await driver.listening((body as { ref: Ref }).ref),
    logs: async (body) => {
      const { id, from } = body as { id: string; from: LogsFrom };
      return await driver.logs(id, from);
    },
    searchLogs: async (body, signal) =>
      await driver.searchLogs((body as { search: LogSearch }).search, undefined, signal),
  };
}

/** Streaming calls. */
export function machineStreams(driver: RuntimeDriver, clock: Clock): StreamHandlers {
  return {
    terminal: async (body, signal) => {
      const { ref, wanted } = body as { ref: Ref; wanted: TerminalOptions };
      const terminal = await driver.terminal(ref, wanted, signal);
      return async (session) => {
        try {
          await relayTerminal(session, terminal, clock);
        } finally {
          terminal.hangUp();
        }
      };
    },
    process: async (body, signal) => {
      const { ref, wanted } = body as { ref: Ref; wanted: ProgramOptions };
      const program = await driver.process(ref, wanted, signal);
      return async (session) => {
        try {
          await relayProcess(session, program);
        } finally {
          program.kill();
        }
      };
    },
    connect: async (body, signal) => {
      const { ref, port } = body as { ref: Ref; port: number };
      const stream = await driver.connect(ref, port, signal);
      return async (session) => await relayTunnel(() => session, stream, clock);
    },
  };
}
