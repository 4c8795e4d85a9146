/** Log drains: what is sent, what happens when the receiver is away or refuses, and what the API says of it. */
import assert from "node:assert/strict";
import { appendFileSync, rmSync } from "node:fs";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import { KEPT_LOGS } from "#core/log-settings.ts";
import { RUNC_LIMITS } from "#drivers/runtime/runc/limits.ts";
import { logHost, logLine } from "#drivers/runtime/runc/logs/fixtures.ts";
import { LogKeeper } from "#drivers/runtime/runc/logs/log-keeper.ts";
import { MACHINE_LIMITS } from "#machines/limits.ts";
import { aDrain, drainHost } from "./log-drain-host.ts";
import { logReceiver, lokiMessages } from "./log-receiver.ts";
import { testPlatform } from "./platform.ts";
import { until } from "./support.ts";

const numbered = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, index) => `line ${from + index}`);

suite("log drains", () => {
  test("every line arrives in order, also those written while the receiver refused connections", async (t) => {
    let status = 503;
    const { url, received } = await logReceiver(t, () => ({ status }));
    const clock = virtualClock(Date.now());
    const { sending, store, write } = drainHost([aDrain({ kind: "loki", target: { url } })], { clock });
    t.after(() => sending.close());
    write("m1", numbered(3));
    await sending.look();
    await until("the failure is stored", async () => store.state("d1")?.failures === 1);
    assert.equal(store.state("d1")?.last_error, "the answer was 503");
    assert.ok((store.state("d1")?.oldest_at ?? 0) > 0, "what waits is known");
    write("m1", numbered(40_000, 3));
    write("m2", numbered(2));
    status = 204;
    await clock.advance(MACHINE_LIMITS.drain_delay_ms - 1);
    await sending.look();
    assert.equal(received.length, 0, "it backs off");
    await clock.advance(1);
    await until("all is sent", async () => {
      await clock.advance(MACHINE_LIMITS.drain_state_ms);
      await sending.look();
      return store.state("d1")?.sent === 40_005;
    });
    assert.deepEqual(lokiMessages(received, "m1"), numbered(40_003));
    assert.deepEqual(lokiMessages(received, "m2"), numbered(2));
    await until("nothing waits", async () => {
      await clock.advance(MACHINE_LIMITS.drain_state_ms);
      await sending.look();
      return store.state("d1")?.oldest_at === null;
    });
    assert.deepEqual([store.state("d1")?.failures, store.state("d1")?.last_error], [0, null]);
  });

  test("a drain goes on where it was after a restart, in a log that was archived meanwhile", async (t) => {
    const { url, received } = await logReceiver(t);
    const host = logHost();
    const drain = aDrain({ kind: "loki", target: { url } });
    const first = drainHost([drain], { host });
    first.write("m1", numbered(60_000));
    await first.sending.look();
    await until("the first lines arrive", async () => received.length > 0);
    await first.sending.close();
    const before = lokiMessages(received).length;
    const keeper = new LogKeeper(host.layout, KEPT_LOGS, { clock: virtualClock(Date.now()), log: silentLog });
    first.write("m1", numbered(20_000, 60_000));
    await keeper.look();
    first.write("m1", numbered(5, 80_000));
    await keeper.look();
    const second = drainHost([drain], { host });
    t.after(() => second.sending.close());
    await until("the rest arrives", async () => {
      await second.sending.look();
      return lokiMessages(received).at(-1) === "line 80004";
    });
    const all = lokiMessages(received);
    const again = all.length - 80_005;
    assert.ok(before <= 60_000 && again >= 0 && again <= before, `${again} lines were sent twice`);
    // Without what was sent twice they are in order.
    assert.deepEqual([...new Set(all)], numbered(80_005));
  });

  test("a line that the receiver never takes is counted, and holds up no other", async (t) => {
    const { url, received } = await logReceiver(t, ({ body }) =>
      body.includes("poison") ? { status: 400, body: "cannot\nparse poison" } : { status: 204 },
    );
    const { sending, store, write } = drainHost([aDrain({ kind: "loki", target: { url } })]);
    t.after(() => sending.close());
    write("m1", [...numbered(500), "poison", ...numbered(500, 500)]);
    await sending.look();
    await until("the rest is sent", async () => store.state("d1")?.sent === 1000);
    assert.deepEqual(lokiMessages(received), numbered(1000));
    const { refused, last_error } = store.state("d1") ?? {};
    assert.equal(refused, 1);
    assert.equal(last_error, "1 lines were refused: the answer was 400: cannot parse poison");
  });

  test("lines that were deleted before they could be sent are counted", async (t) => {
    let status = 503;
    const { url, received } = await logReceiver(t, () => ({ status }));
    const clock = virtualClock(Date.now());
    const { sending, store, write, host } = drainHost([aDrain({ kind: "loki", target: { url } })], { clock });
    t.after(() => sending.close());
    const keeper = new LogKeeper(host.layout, { ...KEPT_LOGS, org_bytes: 1 }, { clock, log: silentLog });
    host.machine("m1");
    keeper.started("m1", "o1");
    status = 204;
    write("m1", ["first"]);
    await sending.look();
    await until("the first line arrives", async () => received.length === 1);
    await until("its position is kept", async () => {
      await clock.advance(MACHINE_LIMITS.drain_state_ms);
      await sending.look();
      return store.state("d1")?.oldest_at === null;
    });
    status = 503;
    const lost = numbered(90_000);
    write("m1", lost);
    // Rotated, archived, and replaced; over its budget the archived one is deleted.
    await keeper.look();
    write("m1", numbered(90_000, 90_000));
    await keeper.look();
    write("m1", ["last"]);
    await keeper.look();
    status = 204;
    await until("what is left arrives", async () => {
      await clock.advance(MACHINE_LIMITS.drain_state_ms);
      await sending.look();
      return lokiMessages(received).at(-1) === "last" && (store.state("d1")?.lost_gaps ?? 0) > 0;
    });
    assert.equal(lokiMessages(received).filter((message) => message === "line 89999").length, 0);
    const { lost_gaps, lost_bytes } = store.state("d1") ?? {};
    const expected = lost.reduce(
      (sum, message) => sum + message.length + "2026-01-01T00:00:00.000000000+00:00 stdout F \n".length,
      0,
    );
    assert.deepEqual([lost_gaps, lost_bytes], [1, expected]);
  });

  test("a machine whose log is deleted as a whole before it was sent is a gap", async (t) => {
    const { url } = await logReceiver(t, () => ({ status: 503 }));
    const clock = virtualClock(Date.now());
    const { sending, store, write, host } = drainHost([aDrain({ kind: "loki", target: { url } })], { clock });
    t.after(() => sending.close());
    write("m1", ["never sent"]);
    await sending.look();
    await until("it failed", async () => store.state("d1")?.failures === 1);
    rmSync(host.machine("m1").logs, { recursive: true });
    await until("the gap is stored", async () => {
      await clock.advance(MACHINE_LIMITS.drain_delay_max_ms);
      await sending.look();
      return store.state("d1")?.lost_gaps === 1;
    });
  });

  test("a machine that moved to another host and back has all its lines at the receiver, in order per host", async (t) => {
    let status = 503;
    const { url, received } = await logReceiver(t, () => ({ status }));
    const drain = aDrain({ kind: "loki", target: { url } });
    const clock = virtualClock(Date.now());
    const one = drainHost([drain], { clock });
    const two = drainHost([drain], { clock, host_id: "h2", store: one.store });
    const hosts = [one, two];
    t.after(() => Promise.all(hosts.map(({ sending }) => sending.close())));
    const keeper = new LogKeeper(one.host.layout, KEPT_LOGS, { clock, log: silentLog });
    one.write("m1", numbered(200));
    for (const { sending } of hosts) await sending.look();
    // It moves while nothing can be sent: the first host keeps what it has not sent, and archives it as of a machine that is gone.
    keeper.destroyed("m1");
    rmSync(one.host.machine("m1").run, { recursive: true });
    two.write("m1", numbered(200, 200));
    for (const { sending } of hosts) await sending.look();
    await clock.advance(RUNC_LIMITS.log_archived_after_ms + 1);
    await keeper.sweep();
    one.write("m1", numbered(200, 400));
    assert.equal(received.length, 0);
    status = 204;
    await until("all lines arrive", async () => {
      await clock.advance(MACHINE_LIMITS.drain_delay_max_ms);
      for (const { sending } of hosts) await sending.look();
      return lokiMessages(received, "m1").length >= 600;
    });
    const numbers = lokiMessages(received, "m1").map((message) => Number(message.split(" ")[1]));
    const isSecond = (number: number): boolean => number >= 200 && number < 400;
    assert.deepEqual(
      numbers.filter((number) => !isSecond(number)).map((number) => `line ${number}`),
      [...numbered(200), ...numbered(200, 400)],
      "the first host's, in order",
    );
    assert.deepEqual(
      numbers.filter(isSecond).map((number) => `line ${number}`),
      numbered(200, 200),
      "the second host's, in order",
    );
    await until("both hosts say so", async () => {
      await clock.advance(MACHINE_LIMITS.drain_state_ms);
      for (const { sending } of hosts) await sending.look();
      const [first, second] = ["h1", "h2"].map((host_id) => one.store.state("d1", host_id));
      return first?.sent === 400 && second?.sent === 200 && first.lost_gaps + second.lost_gaps === 0;
    });
  });

  test("lines that a machine wrote faster than its log could be archived are counted, and the words of it are sent", async (t) => {
    const { url, received } = await logReceiver(t);
    const { sending, store, write, host } = drainHost([aDrain({ kind: "loki", target: { url } })]);
    t.after(() => sending.close());
    write("m1", ["before"]);
    // As a monitor writes it; a machine's own line with the same words counts nothing.
    const words = "hangar: 16777216 bytes of this log were lost here";
    appendFileSync(host.machine("m1").log, logLine(Date.now(), words, "stderr", "L"));
    write("m1", [words, "after"]);
    await until("all arrive", async () => {
      await sending.look();
      return store.state("d1")?.sent === 4 && store.state("d1")?.lost_gaps === 1;
    });
    assert.deepEqual(lokiMessages(received).toSorted(), ["after", "before", words, words]);
    assert.equal(store.state("d1")?.lost_bytes, 16_777_216);
  });

  test("a drain that an organization made reaches no private address, by HTTP or syslog", async (t) => {
    const { url, received } = await logReceiver(t);
    const drains = [
      aDrain({ kind: "otlp", target: { url } }, "d1"),
      aDrain({ kind: "syslog", target: { url: "syslog+tls://127.0.0.1:6514" } }, "d2"),
      aDrain({ kind: "syslog", target: { url: "syslog+tls://localhost" } }, "d3"),
    ];
    const { sending, store, write } = drainHost(drains, { trusted: false });
    t.after(() => sending.close());
    write("m1", ["secret"]);
    await sending.look();
    for (const id of ["d1", "d2", "d3"]) {
      await until("it is refused", async () => store.state(id)?.failures === 1);
      assert.match(store.state(id)?.last_error ?? "", /not a public address.*HANGAR_WEBHOOK_ALLOW_PRIVATE=.*:\d+/, id);
    }
    assert.equal(received.length, 0);
  });
});

suite("API of log drains", () => {
  test("a drain is created, tested, sends what machines write, is listed without its secrets, and deleted", async (t) => {
    const { url, received } = await logReceiver(t);
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    await ask("POST /v1/apps", { body: { app_name: "other" } });
    const start = async (app: string, image: string): Promise<void> => {
      const { body } = await ask(`POST /v1/apps/${app}/machines`, { body: { config: { image } } });
      await ask(`GET /v1/apps/${app}/machines/${body.id}/wait?state=started`);
    };
    await start("web", "before");
    const headers = { authorization: "Basic c2VjcmV0" };
    const input = { kind: "loki", url: `${url}/secret/push`, app_name: "web", headers };
    const { status, body: made } = await ask("POST /v1/orgs/personal/log-drains", { body: input });
    assert.equal(status, 201);
    assert.deepEqual([made.kind, made.address, made.app_name, made.hosts], ["loki", url, "web", []]);
    const tested = await ask(`POST /v1/orgs/personal/log-drains/${made.id}/test`);
    assert.equal(tested.body.delivered, true, tested.text);
    assert.deepEqual(lokiMessages(received), [`test of log drain ${made.id}`]);
    assert.deepEqual([received[0]?.url, received[0]?.headers.authorization], ["/secret/push", headers.authorization]);
    await start("other", "elsewhere");
    await start("web", "after");
    await until("the new line arrives", async () => received.length > 1);
    assert.deepEqual(lokiMessages(received.slice(1)), ["started after"], "only new ones, of this app");
    const listed = await until("the state is stored", async () => {
      const { body, text } = await ask("GET /v1/orgs/personal/log-drains");
      return body.log_drains[0].hosts[0]?.sent === 1 ? { text, state: body.log_drains[0].hosts[0] } : undefined;
    });
    assert.ok(!/secret|c2VjcmV0/.test(listed.text), listed.text);
    assert.deepEqual([listed.state.failures, listed.state.refused, listed.state.lost_gaps], [0, 0, 0]);
    assert.equal((await ask(`DELETE /v1/orgs/personal/log-drains/${made.id}`)).status, 204);
    assert.equal((await ask(`DELETE /v1/orgs/personal/log-drains/${made.id}`)).status, 404);
    assert.deepEqual((await ask("GET /v1/orgs/personal/log-drains")).body.log_drains, []);
  });

  test("`since` sends kept lines too", async (t) => {
    const { url, received } = await logReceiver(t);
    const { ask } = await testPlatform(t);
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const { body } = await ask("POST /v1/apps/web/machines", { body: { config: { image: "kept" } } });
    await ask(`GET /v1/apps/web/machines/${body.id}/wait?state=started`);
    await ask("POST /v1/orgs/personal/log-drains", { body: { kind: "loki", url, since: "1h" } });
    await until("the kept line arrives", async () => received.length > 0);
    assert.deepEqual(lokiMessages(received), ["started kept"]);
  });

  test("bad input is refused with what is allowed", async (t) => {
    const { ask } = await testPlatform(t);
    const cases: [object, RegExp][] = [
      [{ kind: "splunk", url: "https://x.example" }, /kind/],
      [{ kind: "loki", url: "ftp://x.example" }, /https:\/\/host/],
      [{ kind: "loki", url: "https://u:p@x.example" }, /header/],
      [{ kind: "syslog", url: "https://x.example" }, /syslog\+tls:\/\/host:6514/],
      [{ kind: "syslog", url: "syslog+tls://x.example", headers: { a: "b" } }, /no headers/],
      [{ kind: "syslog", url: "syslog+tls://x.example", ca: "no PEM" }, /PEM/],
      [{ kind: "syslog", url: "syslog+tls://x.example", cert: "x" }, /belong together/],
      [{ kind: "otlp", url: "https://x.example", ca: "x" }, /for syslog/],
      [{ kind: "otlp", url: "https://x.example", headers: { "content-type": "x" } }, /set by the platform/],
      [{ kind: "otlp", url: "https://x.example", headers: { "a b": "x" } }, /header's name/],
      [{ kind: "otlp", url: "https://x.example", headers: { a: "x\ny" } }, /printable ASCII/],
      [{ kind: "otlp", url: "https://x.example", since: "soon" }, /how long ago/],
    ];
    for (const [body, words] of cases) {
      const answer = await ask("POST /v1/orgs/personal/log-drains", { body });
      assert.ok(answer.status >= 400 && answer.status < 500, answer.text);
      assert.match(answer.text, words);
    }
    assert.equal((await ask("POST /v1/orgs/personal/log-drains/none/test")).status, 404);
    for (let n = 0; n <= MACHINE_LIMITS.drains_per_org; n++) {
      const answer = await ask("POST /v1/orgs/personal/log-drains", {
        body: { kind: "otlp", url: "http://127.0.0.1:9" },
      });
      if (n === MACHINE_LIMITS.drains_per_org) assert.match(answer.text, /drains_per_org.*limit_reached/s);
      else assert.equal(answer.status, 201);
    }
  });

  test("a drain sends nothing any more when the token that made it is revoked", async (t) => {
    const { url, host, received } = await logReceiver(t);
    const { ask } = await testPlatform(t, { HANGAR_WEBHOOK_ALLOW_PRIVATE: host });
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const { body: token } = await ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } });
    const body = { kind: "loki", url };
    const made = await ask("POST /v1/orgs/personal/log-drains", { body, token: token.token });
    assert.equal(made.status, 201, made.text);
    await ask(`DELETE /v1/orgs/personal/tokens/${token.id}`);
    await ask("POST /v1/apps/web/machines", { body: { config: { image: "x" } } });
    const error = await until("it says why", async () => {
      const { log_drains } = (await ask("GET /v1/orgs/personal/log-drains")).body;
      return log_drains[0].hosts[0]?.last_error;
    });
    assert.match(error, /the token that made this drain was revoked/);
    assert.equal(received.length, 0);
  });
});
