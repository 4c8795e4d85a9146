/** Terminals into machines of other hosts, and tunnels to their ports, over the way between the platform's processes. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { openLocalPort } from "#cli/proxy/tunnel.ts";
import type { Context } from "#cli/verb.ts";
import { Client, ClientError } from "#client/client.ts";
import { postgresMissing } from "../postgres.ts";
import { until } from "../support.ts";
import { seenTerminal } from "../terminals.ts";
import type { Daemon } from "./daemon.ts";
import { insist, startCluster } from "./hosts-support.ts";

const MACHINES = "/v1/apps/web/machines";
const CONFIG = { image: "web:1", guest: { cpus: 1, memory_mb: 256 }, env: { SIM_LISTEN: "7000" } };

const open = async ({ base_url, token }: Daemon, machine_id: string, command?: readonly string[]) =>
  await seenTerminal(new Client({ base_url, token }), machine_id, command);

/** Bytes come back from the port where the machine listens; a port where it does not is refused in words. */
async function tunnelled(t: TestContext, { base_url, token }: Daemon, machine_id: string): Promise<void> {
  const context = { client: new Client({ base_url, token }), say: () => {} } as unknown as Context;
  const wanted = { app_name: "web", machine_id, listen: { host: "127.0.0.1", port: 0 } };
  const { port, close } = await openLocalPort(context, { ...wanted, port: 7000 });
  t.after(close);
  const sent = randomBytes(2_000_000);
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.end(sent);
  assert.ok((await buffer(socket)).equals(sent), "what was sent before the half-close comes back");
  await assert.rejects(openLocalPort(context, { ...wanted, port: 81 }), /nothing listens on port 81/);
}

suite("terminals into machines of other hosts", { skip: postgresMissing() }, () => {
  test("keys, screen, size, signals and the exit code go both ways; a host that is gone hangs up", async (t) => {
    const { controls, hosts } = await startCluster(t, { controls: 1, hosts: 2 });
    const [control] = controls;
    assert.ok(control);
    await insist(control, "POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    const ids = new Map<string, string>();
    await until("there is a machine on each host", async () => {
      const { id, host } = await insist(control, "POST", MACHINES, { config: CONFIG });
      ids.set(String(host), String(id));
      return ids.size === hosts.length;
    });
    for (const id of ids.values()) {
      const waited = await control.call("GET", `${MACHINES}/${id}/wait?state=started&timeout=60`);
      assert.equal(waited.status, 200, JSON.stringify(waited.body));
      const terminal = await open(control, id);
      await terminal.shows(/\$ $/);
      terminal.send("echo hello\r");
      await terminal.shows(/^hello\r$/m);
      terminal.resize({ rows: 50, cols: 132 });
      terminal.send("stty size\r");
      await terminal.shows(/^50 132\r$/m);
      terminal.send("sleep 3600\r");
      await terminal.shows(/sleep 3600\r\n/);
      terminal.signal("SIGINT");
      await terminal.shows(/\^C[\s\S]*\$ $/);
      terminal.send("exit 42\r");
      assert.deepEqual(await terminal.ended, { exit_code: 42, reason: "the program has ended" });
      const much = await open(control, id, ["seq", "20000"]);
      assert.equal((await much.ended).exit_code, 0);
      assert.match(much.seen(), /^1\r\n[\s\S]*\n20000\r\n$/);
      assert.equal(much.seen().split("\n").length, 20_001, "much output arrives whole");
      await tunnelled(t, control, id);
    }

    const [first] = hosts;
    const id = ids.get(first?.id ?? "") ?? assert.fail();
    const cut = await open(control, id);
    await cut.shows(/\$ $/);
    await first?.child.kill();
    const { exit_code, reason } = await cut.ended;
    assert.equal(exit_code, 137, reason);
    const refused = await open(control, id).then(
      () => assert.fail("there is nobody to open it"),
      (thrown: unknown) => thrown,
    );
    assert.ok(refused instanceof ClientError, String(refused));
    assert.equal(refused.body.status, "host_unreachable");
  });
});
