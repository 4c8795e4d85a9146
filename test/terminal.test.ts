/** A terminal into a machine as a client has it: over WebSocket, with the rules of every other request. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { suite, test } from "node:test";
import { Client, ClientError } from "#client/client.ts";
import { MovingClock } from "#core/moving-clock.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import type { PlatformOptions } from "../src/platform.ts";
import { bench } from "./machine-bench.ts";
import { until } from "./support.ts";
import { type SeenTerminal, seenTerminal } from "./terminals.ts";

async function opened(t: Parameters<typeof bench>[0], options: PlatformOptions = {}) {
  const house = await bench(t, {}, options);
  const { id } = (await house.create()).body as { id: string };
  await house.wait(id, "started");
  const client = (token: string | undefined = house.token): Client => new Client({ base_url: house.base_url, token });
  const open = async (command?: string[], token?: string): Promise<SeenTerminal> =>
    await seenTerminal(client(token), id, command);
  return { ...house, id, open };
}

const errorOf = async (work: Promise<unknown>): Promise<Partial<ClientError["body"]>> => {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ClientError, String(thrown));
  return thrown.body;
};

suite("terminals over WebSocket", () => {
  test("a terminal takes keys, shows output, can be resized, and ends with the exit code", async (t) => {
    const { open } = await opened(t);
    const terminal = await open();
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
  });

  test("a terminal runs a given program, and large output arrives complete", async (t) => {
    const { open } = await opened(t);
    const terminal = await open(["seq", "20000"]);
    await terminal.shows(/^1\r\n[\s\S]*\n20000\r\n$/);
    assert.equal((await terminal.ended).exit_code, 0);
  });

  test("a missing token, a read-only token and a stopped machine get clear errors", async (t) => {
    const { open, ask, on, wait, id } = await opened(t);
    assert.equal((await errorOf(open(undefined, "nonsense"))).status, "unauthorized");
    const made = await ask("POST /v1/orgs/personal/tokens", { body: { kind: "readonly" } });
    const reader = made.body.token as string;
    assert.equal((await errorOf(open(undefined, reader))).status, "forbidden");
    assert.equal((await on(`GET ${id}/terminal`)).body.status, "upgrade_required");
    assert.equal((await on(`GET ${id}/terminal?rows=0&term=a%20b`)).body.details.length, 2);
    await on(`POST ${id}/stop`);
    await wait(id, "settled");
    assert.equal((await errorOf(open())).status, "wrong_state");
  });

  test("the terminal limit of a machine holds, and a closed terminal makes room", async (t) => {
    const { open } = await opened(t);
    const all = [];
    for (let n = 0; n < MACHINE_LIMITS.terminals_per_machine; n++) all.push(await open());
    assert.match((await errorOf(open())).error ?? "", /limit terminals_per_machine/);
    all[0]?.close();
    await all[0]?.ended;
    // The platform hears of it a moment later.
    const again = await retried(open);
    all.push(again);
    for (const one of all) one.close();
  });

  test("a terminal ends with its machine, with the platform, and after the idle timeout", async (t) => {
    const clock = new MovingClock({});
    const { open, on, wait, id, close } = await opened(t, { clock });
    const first = await open();
    await on(`POST ${id}/restart`);
    assert.equal((await first.ended).exit_code, 137);
    await wait(id, "started");
    const second = await retried(open);
    await clock.advance(MACHINE_LIMITS.terminal_idle_ms + 1);
    assert.match((await second.ended).reason, /terminal_idle_ms/);
    const third = await open();
    await close();
    assert.match((await third.ended).reason, /the platform is shutting down/);
  });

  test("an invalid message closes the terminal; an invalid handshake gets an error response", async (t) => {
    const { open, base_url, token, id } = await opened(t);
    const terminal = await open();
    terminal.resize({ rows: 0, cols: 5000 });
    assert.match((await terminal.ended).reason, /resize.rows is 1 to 1000/);
    const headers = { authorization: `Bearer ${token}`, connection: "Upgrade", upgrade: "websocket" };
    const status = async (path: string): Promise<number | undefined> =>
      await new Promise((resolve, reject) => {
        const asking = request(`${base_url}${path}`, { headers, agent: false });
        asking.on("response", (answer) => resolve(answer.resume().statusCode)).on("error", reject);
        asking.end();
      });
    assert.equal(await status(`/v1/apps/web/machines/${id}/terminal`), 426);
    assert.equal(await status(`/v1/apps/web/machines/${id}`), 200, "elsewhere the wish is passed over");
  });
});

async function retried(open: () => Promise<SeenTerminal>): Promise<SeenTerminal> {
  return await until("a terminal can be opened", async () => {
    try {
      return await open();
    } catch (thrown) {
      if (!(thrown instanceof ClientError) || !/limit_reached|wrong_state/.test(thrown.body.status ?? "")) throw thrown;
      return undefined;
    }
  });
}
