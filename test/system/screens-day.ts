/** The platforms of the pictures: one as one finds it on a usual day, and one that was just started. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startPlatform } from "../../src/testing/index.ts";
import { until } from "../support.ts";

type Client = Awaited<ReturnType<typeof startPlatform>>["client"];

export interface Emulated {
  base_url: string;
  token: string;
  /** Its own time, which its charts are of. */
  now(): number;
  ids: { machine: string; volume: string; connector: string };
}

export interface Emulations {
  day: Emulated;
  newcomer: Emulated;
  close(): Promise<void>;
}

const SERVICES = [
  {
    protocol: "tcp" as const,
    internal_port: 8080,
    autostart: true,
    ports: [{ port: 8080, handlers: ["http" as const] }],
  },
];
const CHECKS = { alive: { type: "http" as const, port: 8080, path: "/health", interval: "15s", timeout: "2s" } };

/** A quarter of an hour. */
const [STEPS, STEP_MS] = [60, 15_000] as const;
/** The last of them, in which a deploy runs. */
const DEPLOYING_STEPS = 3;

const RULES = {
  groups: [
    {
      name: "queues",
      interval: "15s",
      rules: [
        {
          alert: "QueueTooLong",
          expr: "queue_length > 100",
          for: "2m",
          labels: { severity: "warning" },
          annotations: {
            summary: "{{ $value }} jobs wait",
            description: "Scale the workers: `hangar scale count 4 --app {{ $labels.app }}`",
          },
        },
      ],
    },
  ],
};

/** Both platforms; `day` has three apps, a volume, a connector, a firing alert and a replicated database. */
export async function emulations(): Promise<Emulations> {
  // It ends about now: the metrics engine refuses samples of the future, by the real clock.
  const emulator = await startPlatform({ port: 0, metrics: true, time: new Date(Date.now() - STEPS * STEP_MS) });
  const hook = createServer((request, response) => void request.resume().on("end", () => response.end()));
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  const { client } = emulator;
  const machine = await apps(client);
  await releases(client);
  const volume = await storage(client);
  await branches(client);
  const connector = await surroundings(client, (hook.address() as AddressInfo).port);
  await passes(emulator, 0, STEPS - DEPLOYING_STEPS);
  await deploying(client);
  await passes(emulator, STEPS - DEPLOYING_STEPS, STEPS);
  await client.call("POST /v1/apps/:app_name/volumes/:volume_id/snapshots", {
    params: { app_name: "shop", volume_id: volume },
  });
  // From here on it is that moment: alerts would be resolved while the pictures are taken.
  emulator.clock.freeze();
  const first = await startPlatform({ port: 0 });
  const ids = { machine, volume, connector };
  const shown = ({ base_url, token, clock }: typeof emulator): Emulated => ({
    base_url,
    token,
    now: () => clock.now(),
    ids,
  });
  return {
    day: shown(emulator),
    newcomer: shown(first),
    async close() {
      hook.close();
      await first.close();
      await emulator.close();
    },
  };
}

/** Three apps; answers the id of the first machine of `shop`. */
async function apps(client: Client): Promise<string> {
  let first: string | undefined;
  for (const [app_name, image, count] of [
    ["shop", "registry.example.com/shop:42", 3],
    ["worker", "registry.example.com/worker:7", 2],
    ["docs", "hangar/hello", 1],
  ] as const) {
    const params = { app_name };
    await client.call("POST /v1/apps", { body: { app_name, org_slug: "personal" } });
    await client.call("POST /v1/apps/:app_name/ip_assignments", { params, body: { type: "shared_v4" } });
    for (let n = 1; n <= count; n++) {
      const config = {
        image,
        guest: { cpus: 1, memory_mb: 256 },
        ...(app_name === "shop" ? { checks: CHECKS, env: { CURRENCY: "EUR" } } : {}),
        ...(app_name === "worker" ? {} : { services: SERVICES }),
      };
      const body = { name: `${app_name}-${n}`, config };
      const machine = await client.call("POST /v1/apps/:app_name/machines", { params, body });
      first ??= machine.id;
      const one = { app_name, machine_id: machine.id };
      await client.call("GET /v1/apps/:app_name/machines/:machine_id/wait", {
        params: one,
        query: { state: ["started"] },
      });
      if (app_name === "worker" && n === 2)
        await client.call("POST /v1/apps/:app_name/machines/:machine_id/suspend", { params: one });
    }
  }
  return first ?? "";
}

async function releases(client: Client): Promise<void> {
  for (const [tag, message, digit] of [
    ["41", "new search", "4"],
    ["42", "faster checkout", "8"],
  ] as const) {
    const params = { app_name: "shop" };
    const image = `registry.example.com/shop:${tag}`;
    const { version } = await client.call("POST /v1/apps/:app_name/releases", {
      params,
      body: { description: "deploy", message, definition: {}, image, image_digest: `sha256:${digit.repeat(64)}` },
    });
    await client.call("POST /v1/apps/:app_name/releases/:version", {
      params: { ...params, version: String(version) },
      body: { status: "complete" },
    });
  }
}

/** A deploy of `worker` that runs, and one of `docs` that failed. */
async function deploying(client: Client): Promise<void> {
  for (const [app_name, image, outcome] of [
    ["worker", "registry.example.com/worker:8", { status: "running", progress: "1 of 2 machines: updated worker-1" }],
    ["docs", "hangar/hello", { status: "failed", failure: "docs-1 was not healthy after 300 s (connection refused)" }],
  ] as const) {
    const body = { description: "deploy", definition: {}, image };
    const { version } = await client.call("POST /v1/apps/:app_name/releases", { params: { app_name }, body });
    await client.call("POST /v1/apps/:app_name/releases/:version", {
      params: { app_name, version: String(version) },
      body: outcome,
    });
  }
}

/** Two previews of `shop`: one that runs, and one that is being made. */
async function branches(client: Client): Promise<void> {
  const params = { app_name: "shop" };
  await client.call("PUT /v1/apps/:app_name/previews/settings", {
    params,
    body: { enabled: true, secrets: ["STRIPE_KEY"] },
  });
  for (const [branch, digit] of [
    ["feature/basket", "4"],
    ["fix/typo", "9"],
  ] as const) {
    const body = { branch, git_commit: digit.repeat(40) };
    const { app_name } = await client.call("POST /v1/apps/:app_name/previews", { params, body });
    if (branch !== "feature/basket") continue;
    const own = { params: { app_name } };
    await client.call("POST /v1/apps/:app_name/ip_assignments", { ...own, body: { type: "shared_v4" } });
    const config = { image: "registry.example.com/shop:43", guest: { cpus: 1, memory_mb: 256 }, services: SERVICES };
    await client.call("POST /v1/apps/:app_name/machines", { ...own, body: { name: "basket-1", config } });
    const release = { description: "deploy", definition: {}, image: config.image };
    const { version } = await client.call("POST /v1/apps/:app_name/releases", { ...own, body: release });
    await client.call("POST /v1/apps/:app_name/releases/:version", {
      params: { app_name, version: String(version) },
      body: { status: "complete" },
    });
  }
}

/** A volume and two secrets of `shop`; answers the volume's id. */
async function storage(client: Client): Promise<string> {
  const params = { app_name: "shop" };
  for (const secret_name of ["STRIPE_KEY", "SESSION_SECRET"])
    await client.call("POST /v1/apps/:app_name/secrets/:secret_name", {
      params: { ...params, secret_name },
      body: { value: "hidden" },
    });
  const { id } = await client.call("POST /v1/apps/:app_name/volumes", { params, body: { name: "data", size_gb: 10 } });
  return id;
}

/** A connector with a policy, alert rules, a receiver and a silence; answers the connector's id. */
async function surroundings(client: Client, port: number): Promise<string> {
  const params = { org_slug: "personal" };
  await client.call("PUT /v1/orgs/:org_slug/alerts/receivers", {
    params,
    body: {
      content: [
        "route: {receiver: operator, group_by: [app]}",
        "receivers:",
        "  - name: operator",
        `    webhook_configs: [{url: "http://127.0.0.1:${port}/"}]`,
      ].join("\n"),
    },
  });
  await client.call("PUT /v1/orgs/:org_slug/alerts/rules/:rule_file", {
    params: { ...params, rule_file: "queues" },
    body: { content: JSON.stringify(RULES) },
  });
  await client.call("POST /v1/orgs/:org_slug/alerts/silences", {
    params,
    body: { matchers: ['alertname="VolumeFillsUp"'], duration: "48h", comment: "known, fixed on Monday" },
  });
  const { connection } = await client.call("POST /v1/oauth/connections/custom_api", {
    body: { name: "billing", base_api_url: "https://api.example.com", access_token: "key", auth_method: "header" },
  });
  await client.call("PUT /v1/oauth/connections/:connection_id", {
    params: { connection_id: connection.id },
    body: { access_policy: { name_prefix: "shop-", blocked_endpoints: ["/admin/*"] } },
  });
  return connection.id;
}

/** Series of programs: the queue of `worker`, and a database of two nodes, one of them behind. */
function samples(step: number): string {
  const node = (name: string, ...values: number[]): string[] =>
    values.map((value, n) => `hangar_db_${name}{app="ledger",instance="node-${n}"} ${value}`);
  return [
    `queue_length{app="worker"} ${40 + step * 2}`,
    ...node("is_primary", 1, 0),
    ...node("term", 7, 7),
    ...node("lag_seconds", 0, 1.5),
    ...node("replicas", 1, 0),
    ...[1200, 1190].map((value, n) => `hangar_db_txid{app="ledger",instance="node-${n}",db="app.db"} ${value}`),
  ].join("\n");
}

/** A quarter of an hour, in steps of the sampling, each awaited, so that charts have lines. */
async function passes(emulator: Awaited<ReturnType<typeof startPlatform>>, from: number, to: number): Promise<void> {
  const api = `${emulator.base_url}/prometheus/personal/api/v1`;
  const headers = { authorization: `Bearer ${emulator.token}` };
  const newest_s = async (): Promise<number> => {
    const query = "max(timestamp(svc_instance_memory_mem_total))";
    const time = emulator.clock.now() / 1000;
    const response = await fetch(`${api}/query?nocache=1&time=${time}&query=${encodeURIComponent(query)}`, { headers });
    const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } };
    return Number(data.result[0]?.value[1] ?? 0);
  };
  for (let step = from; step < to; step++) {
    const before = emulator.clock.now();
    const url = `${api}/import/prometheus?timestamp=${before}`;
    const told = await fetch(url, { method: "POST", headers, body: samples(step) });
    if (!told.ok) throw new Error(await told.text());
    await emulator.clock.advance(STEP_MS);
    await until("the samples of this step", async () => (await newest_s()) * 1000 > before - STEP_MS);
  }
}
