/** From inside a real machine: its token, its connectors, its AWS variables, across restarts, suspends and users. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { suite, test } from "node:test";
import * as jose from "jose";
import { provider } from "../inside.ts";
import { busyboxLayer, programLayer, realMachinesMissing } from "../rootfs.ts";
import { type Caller, realPlatform } from "./runc-support.ts";

const CURL = "/usr/bin/curl";
const missing = realMachinesMissing() ?? (spawnSync(CURL, ["-V"]).error ? "there is no curl" : undefined);
const SPIN = ["sh", "-c", "trap 'exit 0' INT TERM; while :; do sleep 1 & wait; done"];

async function exec(
  caller: Caller,
  id: string,
  script: string,
): Promise<{ exit_code: number; stdout: string; stderr: string }> {
  const answer = await caller.ask("POST", `/v1/apps/web/machines/${id}/exec`, {
    command: ["sh", "-c", script],
    timeout: 60,
  });
  assert.equal(answer?.status, 200, JSON.stringify(answer?.body));
  return answer?.body as { exit_code: number; stdout: string; stderr: string };
}

async function started(caller: Caller, name: string, env: Record<string, string> = {}): Promise<string> {
  const config = { image: "web", init: { exec: SPIN }, env, metadata: { sprite_labels: "prod" } };
  const made = await caller.ask("POST", "/v1/apps/web/machines", { name, config });
  const id = String(made?.body["id"]);
  const waited = await caller.ask("GET", `/v1/apps/web/machines/${id}/wait?timeout=60`);
  assert.equal(waited?.status, 200, JSON.stringify(waited?.body));
  return id;
}

const TOKEN = `curl -sS --unix-socket /.svc/api -X POST http://localhost/v1/tokens/oidc --data '{"aud":"test"}'`;

suite("identity inside a real machine", { skip: missing }, () => {
  test("token, gateway and AWS file work for every user, after a kill of the platform and a suspend", async (t) => {
    const real = realPlatform(t);
    programLayer(busyboxLayer(join(real.images, "web")), CURL, "curl");
    process.env["HANGAR_GATEWAY_ALLOW_PRIVATE"] = "1";
    let caller = await real.start();
    await caller.ask("POST", "/v1/apps", { app_name: "web" });
    const env = { AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/web" };
    const [one, two] = [await started(caller, "web-1", env), await started(caller, "web-2")];

    const believed = async (text: string, audience: string) => {
      const keys = (await caller.ask("GET", "/oidc/personal/.well-known/jwks.json"))?.body;
      const { payload } = await jose.jwtVerify(
        text.trim(),
        jose.createLocalJWKSet(keys as unknown as jose.JSONWebKeySet),
        { audience },
      );
      return payload;
    };
    for (const [id, name] of [
      [one, "web-1"],
      [two, "web-2"],
    ] as const) {
      const { stdout, stderr } = await exec(caller, id, TOKEN);
      assert.notEqual(stdout, "", stderr);
      assert.equal((await believed(stdout, "test")).sub, `personal:web:${name}`);
    }
    // Not only root: whoever the program in the machine runs as.
    const asApp = await exec(caller, one, `su app -c "${TOKEN.replaceAll('"', '\\"')}"`);
    assert.equal((await believed(asApp.stdout, "test"))["machine_id"], one);
    // Programs that were written for Fly have another name for the socket.
    const second = await exec(caller, one, TOKEN.replaceAll("/.svc/", "/.fly/"));
    assert.equal((await believed(second.stdout, "test"))["machine_id"], one, second.stderr);
    const file = await exec(
      caller,
      one,
      "cat /proc/*/environ | tr '\\0' '\\n' | grep ^AWS | sort -u; cat /.svc/oidc_token",
    );
    assert.match(file.stdout, /AWS_WEB_IDENTITY_TOKEN_FILE=\/\.svc\/oidc_token/);
    assert.equal((await believed(file.stdout.split("\n").at(-1) ?? "", "sts.amazonaws.com"))["machine_id"], one);
    assert.notEqual((await exec(caller, one, "rm /.svc/api || touch /.svc/x")).exit_code, 0, "the folder is read-only");

    const upstream = await provider(t, (incoming, response) => void response.end(`you asked for ${incoming.url}`));
    const made = await caller.ask("POST", "/v1/oauth/connections/custom_api", {
      name: "test",
      base_api_url: upstream.url,
      access_token: "canary-token",
      auth_method: "header",
      test_url: "/hello",
      access_policy: { name_prefix: "web-1", sprite_labels: ["prod"] },
    });
    const { usage_snippet } = (made?.body["connection"] ?? {}) as { usage_snippet: string };
    assert.equal((await exec(caller, one, usage_snippet)).stdout, "you asked for /hello");
    assert.deepEqual(
      upstream.seen.map(({ headers }) => headers.authorization),
      ["Bearer canary-token"],
    );
    assert.match((await exec(caller, two, usage_snippet)).stdout, /connector_denied.*name_prefix|does not start with/);

    // Over the private network a machine is its address; the gateway and pushes of metrics are there, and nothing else.
    const { id } = (made?.body["connection"] ?? {}) as { id: string };
    const network = (path: string, more = ""): string =>
      `curl -sS --retry 20 --retry-delay 1 --retry-all-errors ${more} http://_api.internal:4280${path}`;
    const gateway = network(`/v1/gateway/custom_api/${id}/hello`);
    assert.equal((await exec(caller, one, gateway)).stdout, "you asked for /hello");
    assert.match((await exec(caller, two, gateway)).stdout, /connector_denied.*name_prefix|does not start with/);
    assert.match((await exec(caller, one, network("/v1/tokens/oidc", "-X POST"))).stdout, /not_found/);
    const push = network(
      "/prometheus/personal/api/v1/import/prometheus",
      `--data-binary 'orders{instance="forged"} 7'`,
    );
    assert.deepEqual((await exec(caller, one, push)).stdout, "");
    const query = "/prometheus/personal/api/v1/query?query=orders";
    const { result } = ((await caller.ask("GET", query))?.body["data"] ?? {}) as {
      result: { metric: object; value: unknown[] }[];
    };
    const { instance_id: instance } = (await caller.ask("GET", `/v1/apps/web/machines/${one}`))?.body ?? {};
    assert.deepEqual(
      result.map(({ metric, value }) => [{ ...metric, host: "", region: "" }, value[1]]),
      [[{ __name__: "orders", app: "web", instance, host: "", region: "" }, "7"]],
    );
    assert.match((await exec(caller, one, network(query))).stdout, /not_found|unauthorized/);

    await real.kill();
    caller = await real.start();
    assert.equal((await believed((await exec(caller, one, TOKEN)).stdout, "test"))["machine_id"], one);

    // A machine that puts itself to sleep, over the same socket.
    const suspend = `curl -sS --unix-socket /.svc/api -X POST http://localhost/v1/apps/web/machines/${one}/suspend`;
    await exec(caller, one, suspend);
    const slept = await caller.ask("GET", `/v1/apps/web/machines/${one}/wait?state=settled&timeout=60`);
    assert.ok(["suspended", "stopped"].includes(String(slept?.body["state"])), JSON.stringify(slept?.body));
    const { events } = ((await caller.ask("GET", `/v1/apps/web/machines/${one}`))?.body ?? {}) as {
      events: { request?: { reason?: string } }[];
    };
    t.diagnostic(`it is ${String(slept?.body["state"])} ${events[0]?.request?.reason ?? ""}`);
    await caller.ask("POST", `/v1/apps/web/machines/${one}/start`);
    await caller.ask("GET", `/v1/apps/web/machines/${one}/wait?timeout=60`);
    assert.equal((await believed((await exec(caller, one, TOKEN)).stdout, "test"))["machine_id"], one);
  });
});
