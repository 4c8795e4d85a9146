/** Converts responses of the platform's rows to the formats of Fly's clients. */

/** JSON of a schema that the platform's own row holds; only what is read here has a type. */
type Fields = Record<string, unknown>;
type Port = Fields & { "end-port"?: number };
type Service = Fields & { ports?: Port[] };
type Config = Fields & { statics?: unknown; services?: Service[] };
type Event = Fields & { source: string };
export type MachineFields = Fields & {
  nonce?: string;
  checks?: Record<string, Fields>;
  events?: Event[];
  config?: Config;
};
export type CertificateFields = Fields & {
  kind: string;
  status: string;
  configured: boolean;
  ownership: { proved: boolean; name: string; value: string };
  problem?: string;
  expires_at?: string;
};

/** Fly's names for the source of an event. */
const SOURCES: Record<string, string> = { host: "flyd", policy: "flyd", schedule: "flyd", standby: "flyd" };

const eventOf = ({ source, ...event }: Event): Fields => ({ ...event, source: SOURCES[source] ?? source });

/** `end-port` is how the specification writes it; a list of statics is what a Go client reads. */
function configOf({ statics, services, ...rest }: Config): Fields {
  return {
    ...rest,
    ...(statics ? { statics: [statics].flat() } : {}),
    ...(services ? { services: services.map(serviceOf) } : {}),
  };
}

const serviceOf = ({ ports, ...service }: Service): Fields => ({
  ...service,
  ...(ports
    ? { ports: ports.map(({ "end-port": end, ...port }) => ({ ...(end ? { end_port: end } : {}), ...port })) }
    : {}),
});

/** Checks are a list. A lease's nonce is returned only by the request that takes the lease. */
export function machineShape({ checks, events, config, ...machine }: MachineFields): Fields {
  const { nonce: _, ...shown } = machine;
  return {
    ...shown,
    ...(config ? { config: configOf(config) } : {}),
    ...(checks ? { checks: Object.values(checks) } : {}),
    ...(events ? { events: events.map(eventOf) } : {}),
  };
}

export const changedMachineShape = (machine: MachineFields): Fields => ({
  ...machineShape(machine),
  ...(machine.nonce ? { nonce: machine.nonce } : {}),
});

/** The state of a host name, as `fly certs` shows it. */
const certificateState = ({ status, ownership: { proved } }: CertificateFields): string =>
  status === "ready" ? "active" : proved ? "pending_validation" : "pending_ownership";

export function certificateShape(certificate: CertificateFields): Fields {
  const { hostname, kind, configured, ownership, problem, created_at, updated_at, expires_at } = certificate;
  const issued = {
    source: kind === "acme" ? "fly" : "custom",
    status: certificate.status === "ready" ? "active" : "pending",
    created_at,
    expires_at,
    issued: [{ type: "ecdsa", expires_at }],
  };
  return {
    hostname,
    configured,
    acme_requested: kind === "acme",
    status: certificateState(certificate),
    certificates: expires_at ? [issued] : [],
    validation: {
      dns_configured: ownership.proved,
      alpn_configured: configured,
      http_configured: configured,
      ownership_txt_configured: ownership.proved,
    },
    dns_requirements: {
      a: [],
      aaaa: [],
      cname: "",
      acme_challenge: { name: "", target: "" },
      ownership: { name: ownership.name, app_value: ownership.value, org_value: "" },
    },
    ...(problem ? { validation_errors: [{ code: null, message: problem, timestamp: updated_at }] } : {}),
  };
}

export function certificateSummary(certificate: CertificateFields): Fields {
  const { hostname, kind, configured, ownership, created_at, updated_at } = certificate;
  return {
    hostname,
    status: certificateState(certificate),
    acme_dns_configured: false,
    acme_alpn_configured: configured,
    acme_http_configured: configured,
    ownership_txt_configured: ownership.proved,
    configured,
    acme_requested: kind === "acme",
    has_custom_certificate: kind === "custom",
    has_fly_certificate: kind === "acme" && certificate.status === "ready",
    created_at,
    updated_at,
  };
}
