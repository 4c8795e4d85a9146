/** In a network of its own: calls the gateway from a machine's private address, and from one that is none. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { ask, inside, provider } from "../inside.ts";

const ends: (() => unknown)[] = [];
const t = { after: (end: () => unknown) => void ends.unshift(end) };

function ip(...args: string[]): void {
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
}

try {
  ip("link", "set", "lo", "up");
  const platform = await inside(t, { HANGAR_LISTEN: "[::1]:0", HANGAR_GATEWAY_ALLOW_PRIVATE: "1" });
  const upstream = await provider(t);
  const body = {
    name: "n",
    base_api_url: upstream.url,
    access_token: "t",
    auth_method: "header",
    access_policy: { name_prefix: "web" },
  };
  const { connection } = (await platform.ask("POST /v1/oauth/connections/custom_api", { body })).body;
  const [web, other] = [await platform.machine("web-1"), await platform.machine("other-1")];
  const addressOf = async (id: string): Promise<string> =>
    (await platform.ask(`GET /v1/apps/web/machines/${id}`)).body.private_ip;
  const port = new URL(platform.base_url).port;
  const call = async (localAddress: string) => {
    ip("-6", "addr", "add", `${localAddress}/128`, "dev", "lo", "nodad");
    const headers = { authorization: "Bearer of-the-callers-own" };
    return await ask({
      host: "::1",
      port,
      path: `/v1/gateway/custom_api/${connection.id}/user`,
      localAddress,
      headers,
      agent: false,
    });
  };
  const mine = await addressOf(web.id);
  assert.equal((await call(mine)).status, 200);
  assert.equal((await call(await addressOf(other.id))).body.rule, 'name_prefix "web"');
  // The same machine in another network or on another host is none of ours, and neither is one that is not there.
  const [a = "", b = "", ...rest] = mine.split(":");
  assert.equal((await call([a, b === "1" ? "2" : "1", ...rest].join(":"))).status, 401);
  assert.equal((await call("fdaa::1")).status, 401);
  await platform.ask(`POST /v1/apps/web/machines/${web.id}/stop`);
  await platform.ask(`GET /v1/apps/web/machines/${web.id}/wait?state=settled`);
  ip("-6", "addr", "del", `${mine}/128`, "dev", "lo");
  assert.equal((await call(mine)).status, 401, "a machine that is stopped calls nobody");
  process.stdout.write("all as it should be\n");
} finally {
  for (const end of ends) await end();
}
