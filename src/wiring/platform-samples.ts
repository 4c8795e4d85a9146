/** Series of the platform itself that the built-in alerting rules need: checks, certificates, hosts. */
import { DEFAULT_ORG } from "#auth/guard.ts";
import type { AuthStore } from "#auth/store.ts";
import type { Clock } from "#core/clock.ts";
import type { HostService } from "#hosts/service.ts";
import type { BuiltinSample, SampleProvider } from "#metrics/builtin/sources.ts";
import type { Database } from "#stores/database.ts";
import { sqlProxyStore } from "#stores/sql/proxy.ts";
import type { MeasuredMachines } from "./metrics.ts";

interface Parts {
  machines: MeasuredMachines;
  clock: Clock;
  hosts: Pick<HostService, "hosts">;
  authStore: Pick<AuthStore, "findOrg">;
  /** Hosts and certificates are reported by processes with the API, machines by their hosts. */
  serves_api: boolean;
}

/** Certificates and hosts are read from the database, and change seldom. */
const READ_AGAIN_MS = 60_000;

export function platformSamples(database: Database, parts: Parts): SampleProvider {
  const { machines, clock, serves_api } = parts;
  let read_at = Number.NEGATIVE_INFINITY;
  let read: BuiltinSample[] = [];
  return async () => {
    if (serves_api && clock.monotonic() - read_at >= READ_AGAIN_MS) {
      read = [...(await certificateSamples(database)), ...(await hostSamples(parts))];
      read_at = clock.monotonic();
    }
    return [...machines.checkSamples(), ...read];
  };
}

async function certificateSamples(database: Database): Promise<BuiltinSample[]> {
  return (await sqlProxyStore(database).certificates()).flatMap(({ org_id, hostname, expires_at }) =>
    expires_at === null
      ? []
      : [
          {
            org_id,
            name: "svc_certificate_not_after_seconds",
            labels: { host_name: hostname },
            value: Math.floor(expires_at / 1000),
          },
        ],
  );
}

/** Hosts are the operator's, whose organization is the first one. A single host has no samples about itself. */
async function hostSamples({ hosts, authStore }: Parts): Promise<BuiltinSample[]> {
  const all = await hosts.hosts();
  const org = all.length > 1 ? await authStore.findOrg(DEFAULT_ORG) : undefined;
  if (!org) return [];
  return all.map(({ id, region, state }) => ({
    org_id: org.id,
    name: "svc_host_up",
    labels: { host: id, region },
    value: state === "ok" ? 1 : 0,
  }));
}
