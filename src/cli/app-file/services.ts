/** `[http_service]` and `[[services]]` as a machine's services. */
import type { MachineService } from "#client/api.ts";
import { checkOf } from "./checks.ts";
import { tables } from "./read.ts";

type Table = Record<string, unknown>;

interface OwnedService {
  processes: readonly string[] | undefined;
  service: MachineService;
}

export function servicesOf(values: Table): OwnedService[] {
  const http = tables(values["http_service"]).map(httpService);
  return [...http, ...tables(values["services"]).map(plainService)];
}

/** An HTTP service uses ports 80 and 443. */
function httpService(table: Table): OwnedService {
  const { force_https, http_options, tls_options, checks } = table;
  const options = http_options === undefined ? {} : { http_options };
  const ports = [
    { port: 80, handlers: ["http"], ...(force_https === undefined ? {} : { force_https }), ...options },
    { port: 443, handlers: ["tls", "http"], ...options, ...(tls_options === undefined ? {} : { tls_options }) },
  ];
  return owned(table, { ports, checks: tables(checks).map((check) => checkOf(check, "http")) });
}

function plainService(table: Table): OwnedService {
  const { ports, checks, tcp_checks, http_checks } = table;
  return owned(table, {
    ports: tables(ports),
    checks: [
      ...tables(checks).map((check) => checkOf(check)),
      ...tables(tcp_checks).map((check) => checkOf(check, "tcp")),
      ...tables(http_checks).map((check) => checkOf(check, "http")),
    ],
  });
}

function owned(table: Table, { ports, checks }: { ports: Table[]; checks: unknown[] }): OwnedService {
  const { processes, internal_port, protocol, concurrency } = table;
  const service: Table = {
    protocol: protocol === "udp" ? "udp" : "tcp",
    internal_port: internal_port ?? 8080,
    ports,
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(table["auto_stop_machines"] === undefined ? {} : { autostop: table["auto_stop_machines"] }),
    ...(table["auto_start_machines"] === undefined ? {} : { autostart: table["auto_start_machines"] }),
    ...(table["min_machines_running"] === undefined ? {} : { min_machines_running: table["min_machines_running"] }),
    ...(checks.length > 0 ? { checks } : {}),
  };
  const list = processes as string[] | undefined;
  return { processes: list && list.length > 0 ? list : undefined, service: service as unknown as MachineService };
}
