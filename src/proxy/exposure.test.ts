import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { ServiceConfig } from "#machines/config/config-schema.ts";
import type { Entry } from "#network/directory.ts";
import type { IpAssignment } from "#network/types.ts";
import { appTable, ownAddresses } from "./exposure.ts";
import { OPTIONS } from "./fixtures.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { AppTable, PortOptions } from "./table.ts";

type Port = NonNullable<ServiceConfig["ports"]>[number];

const SHARED = { ip: "127.0.0.1", type: "shared_v4", shared: true } as IpAssignment;

const NOW = 1_000_000;

/** The table of an app with one machine that has this service. */
function exposed(
  ports: Port[],
  assignments: IpAssignment[] = [SHARED],
  change: Partial<Record<keyof Entry, unknown>> = {},
): AppTable | undefined {
  const service = { protocol: "tcp", internal_port: 8080, ports } as ServiceConfig;
  const machine = {
    id: "m1",
    instance_id: "v1",
    state: "started",
    region: "local",
    checks: {},
    config: { services: [service] },
  };
  return appTable({
    app: { id: "a1", name: "web", org_id: "o1", created_at: 1 },
    machines: [{ ...machine, ...change } as unknown as Entry],
    assignments,
    names: { hostnames: [], reserved: [] },
    domain: "localhost",
    reach: (_, port) => ({ host: "127.0.0.1", port }),
    slot: () => 1,
    layers: () => undefined,
    resting: new Set(),
    now: NOW,
  });
}

suite("ports exposed to the internet", () => {
  test("a machine's IPv4 address is used on its own host, and where there is a route to it", () => {
    const reach = ownAddresses(["0001"]);
    const machine = { id: "m1", host_id: "0001", private_ip: "fdaa:1:2:1::2", private_ipv4: "100.96.0.1" };
    assert.deepEqual(reach(machine, 80), { host: "fdaa:1:2:1::2", ipv4: "100.96.0.1", port: 80 });
    assert.deepEqual(reach({ ...machine, host_id: "0002" }, 80), { host: "fdaa:1:2:1::2", port: 80 });
    assert.deepEqual(reach({ ...machine, private_ipv4: null }, 80), { host: "fdaa:1:2:1::2", port: 80 });
    const routed = { ...machine, host_id: "0002", private_ipv4: "100.64.0.1" };
    assert.equal(reach(routed, 80)?.ipv4, "100.64.0.1", "of a block that there is a route to");
  });

  test("an app without an address, or a port without a handler, exposes nothing", () => {
    assert.equal(exposed([{ port: 80, handlers: ["http"] }], []), undefined);
    assert.equal(exposed([{ port: 80, handlers: [] }]), undefined);
    assert.equal(exposed([{ port: 80, handlers: ["http"] }])?.ports.length, 1);
  });

  test("the options of a service port become the options of the listener", () => {
    const said: [Partial<Port>, Partial<PortOptions>][] = [
      [{}, {}],
      [{ handlers: ["tls", "http"] }, { tls: true }],
      [{ handlers: ["tcp"] }, { http: false }],
      [{ handlers: ["pg_tls"] }, { http: false, tls: true, pg_tls: true }],
      [{ handlers: ["proxy_proto", "http"] }, { proxy_protocol: 1 }],
      [
        { handlers: ["proxy_proto"], proxy_proto_options: { version: "v2" } },
        { http: false, proxy_protocol: 2 },
      ],
      [{ force_https: true }, { force_https: true }],
      [{ http_options: { compress: true, h2_backend: true } }, { compress: true, h2_backend: true }],
      [{ http_options: { idle_timeout: 7 } }, { idle_ms: 7000 }],
      [{ http_options: { headers_read_timeout: 3 } }, { head_ms: 3000 }],
      [{ http_options: { headers_read_timeout: 3600 } }, { head_ms: 60_000 }],
      [{ http_options: { response: { pristine: true } } }, { pristine: true }],
      [
        {
          http_options: { response: { headers: { "X-A": "1", "X-B": ["2", "3"], "X-C": false, connection: "close" } } },
        },
        {
          headers: [
            ["x-a", ["1"]],
            ["x-b", ["2", "3"]],
            ["x-c", []],
          ],
        },
      ],
      [{ tls_options: { versions: ["TLSv1.3"], alpn: ["h2"] } }, { min_version: "TLSv1.3", alpn: ["h2"] }],
      [{ tls_options: { versions: ["TLSv1.2"] } }, { max_version: "TLSv1.2" }],
      [{ tls_options: { default_self_signed: true } }, { self_signed: true }],
    ];
    for (const [port, options] of said) {
      const table = exposed([{ port: 8000, handlers: ["http"], ...port }]);
      const known = table?.ports[0]?.options;
      const expected = { ...OPTIONS, https_port: port.handlers?.includes("tls") ? 8000 : 443, ...options };
      assert.deepEqual(known, expected, JSON.stringify(port));
    }
  });

  test("a machine that is stopped, cordoned or unhealthy gets no traffic", () => {
    const targets = (change: Partial<Record<keyof Entry, unknown>>): number | undefined =>
      exposed([{ port: 80, handlers: ["http"] }], [SHARED], change)?.ports[0]?.targets.length;
    assert.equal(targets({}), 1);
    assert.equal(targets({ checks: { web: { status: "passing" } } }), 1);
    for (const state of ["created", "starting", "stopping", "stopped", "suspended"])
      assert.equal(targets({ state }), 0);
    assert.equal(targets({ cordoned: true }), 0);
    assert.equal(targets({ checks: { web: { status: "critical" } } }), 0);
  });

  test("requests wait for a machine that has just started and fails its checks, and not for one that fails later", () => {
    const awaited = (ago: number, change: Partial<Record<keyof Entry, unknown>> = {}): number | undefined => {
      const machine = { started_at: NOW - ago, checks: { web: { status: "critical" } }, ...change };
      return exposed([{ port: 80, handlers: ["http"] }], [SHARED], machine)?.ports[0]?.startable.length;
    };
    assert.equal(awaited(PROXY_LIMITS.warm_up_ms - 1), 1);
    assert.equal(awaited(PROXY_LIMITS.warm_up_ms), 0);
    assert.equal(awaited(0, { cordoned: true }), 0);
    assert.equal(awaited(0, { checks: {} }), 0, "it gets requests already");
  });

  test("a failing informational check does not remove a machine from routing", () => {
    const targets = (kind: string): number | undefined => {
      const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] }];
      const config = { services, checks: { web: { type: "tcp", port: 80, kind } } };
      return exposed([], [SHARED], { config, checks: { web: { status: "critical" } } })?.ports[0]?.targets.length;
    };
    assert.deepEqual([targets("informational"), targets("readiness")], [1, 0]);
  });

  test("a port range is one entry of the table, in either spelling of its end", () => {
    for (const end of [{ end_port: 8010 }, { "end-port": 8010 }]) {
      const table = exposed([{ start_port: 8000, ...end, handlers: ["tcp"] }]);
      assert.deepEqual(
        table?.ports.map(({ start, end: last }) => [start, last]),
        [[8000, 8010]],
      );
    }
  });
});
