/** Notifications next to foreign programs: Debian's Alertmanager and a mail server (python3-aiosmtpd). */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { labelsOf } from "#metrics/tsdb/fixtures.ts";
import { seriesBatch } from "#metrics/tsdb/ingest/series-batch.ts";
import { freePort } from "#proxy/fixtures.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { tempDir, until } from "../support.ts";

const ALERTMANAGER = "/usr/bin/prometheus-alertmanager";
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape.
type Body = any;
const ALERTS = "/v1/orgs/personal/alerts";
const RULES = `groups: [{name: g, interval: 1s, rules: [{alert: Errors, expr: errors > 5, labels: {severity: page}, annotations: {summary: "Überlast: {{ $labels.app }}"}}]}]`;

function stopAtEnd(t: TestContext, child: ChildProcess): void {
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  });
}

async function fire(platform: TestPlatform, value: number): Promise<void> {
  const org = (await platform.ask("GET /v1/orgs/personal")).body.id;
  const sample = { labels: labelsOf({ __name__: "errors", app: "web" }), timestamp: systemClock.now(), value };
  await platform.metrics().append(org, seriesBatch([sample]));
}

async function apply(platform: TestPlatform, content: string): Promise<void> {
  const put = await platform.ask(`PUT ${ALERTS}/receivers`, { body: { content } });
  assert.equal(put.status, 200, put.text);
  await platform.ask(`PUT ${ALERTS}/rules/g`, { body: { content: RULES } });
}

suite("notifications to foreign programs", () => {
  test("Alertmanager gets firing and resolved alerts", {
    skip: !existsSync(ALERTMANAGER) && "needs prometheus-alertmanager",
  }, async (t) => {
    const dir = tempDir();
    const port = await freePort();
    const file = join(dir, "am.yml");
    writeFileSync(file, "route: {receiver: none}\nreceivers: [{name: none}]\n");
    const args = [
      `--config.file=${file}`,
      `--storage.path=${dir}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--cluster.listen-address=",
    ];
    stopAtEnd(t, spawn(ALERTMANAGER, args, { stdio: "ignore" }));
    const url = `http://127.0.0.1:${port}`;
    await until("Alertmanager is ready", () =>
      fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    const platform = await testPlatform(t);
    await fire(platform, 9);
    await apply(platform, JSON.stringify({ alertmanagers: [{ url }] }));
    const alerts = async (): Promise<Body[]> => (await (await fetch(`${url}/api/v2/alerts`)).json()) as Body[];
    const [alert] = await until("the alert is there", async () => {
      const all = await alerts();
      return all.length > 0 && all;
    });
    assert.deepEqual(alert.labels, { alertname: "Errors", app: "web", severity: "page" });
    assert.deepEqual([alert.annotations.summary, alert.status.state], ["Überlast: web", "active"]);
    await fire(platform, 1);
    await until("it is resolved", async () => (await alerts()).length === 0);
  });

  const mail = spawnSync("/usr/bin/python3", ["-c", "import aiosmtpd"]).status === 0;
  test("a mail server gets one message for each recipient's group", {
    skip: !mail && "needs python3-aiosmtpd",
  }, async (t) => {
    const dir = tempDir();
    const port = await freePort();
    const child = spawn(
      "/usr/bin/python3",
      ["-m", "aiosmtpd", "-n", "-l", `127.0.0.1:${port}`, "-c", "aiosmtpd.handlers.Mailbox", join(dir, "box")],
      { stdio: "ignore" },
    );
    stopAtEnd(t, child);
    const platform = await testPlatform(t);
    await fire(platform, 9);
    const email = {
      to: "ops@example.com, boss@example.com",
      from: "hangar@example.com",
      smarthost: `127.0.0.1:${port}`,
      require_tls: false,
    };
    await apply(
      platform,
      JSON.stringify({
        route: { receiver: "mail", group_wait: "0s" },
        receivers: [{ name: "mail", email_configs: [email] }],
      }),
    );
    const file = await until(
      "the message is there",
      () => {
        const box = join(dir, "box/new");
        const [name] = existsSync(box) ? readdirSync(box) : [];
        return name ? join(box, name) : undefined;
      },
      { every_ms: 100 },
    );
    const script =
      "import sys,email,email.policy,json; m=email.message_from_file(open(sys.argv[1]),policy=email.policy.default); print(json.dumps([m['subject'],m['to'],m['from'],m.get_content(),len(m.defects)]))";
    const { stdout, stderr } = spawnSync("/usr/bin/python3", ["-c", script, file], { encoding: "utf8" });
    const [subject, to, from, content, defects] = JSON.parse(stdout || stderr);
    assert.equal(subject, "[FIRING:1] Errors Überlast: web");
    assert.equal(to, "ops@example.com, boss@example.com");
    assert.match(from, /hangar@example\.com/);
    assert.match(content, /FIRING Errors: Überlast: web\n {2}app: web/);
    assert.equal(defects, 0, readFileSync(file, "utf8"));
    await until("it is delivered", async () => {
      const [one] = (await platform.ask(`GET ${ALERTS}/notifications`)).body.notifications;
      return one?.state === "delivered";
    });
  });
});
