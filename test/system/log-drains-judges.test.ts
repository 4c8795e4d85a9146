/**
 * Foreign log servers take what log drains send, every line once and as it was written: rsyslog over TLS from Debian,
 * Loki and its parser alone, and VictoriaLogs, which also has an endpoint for OTLP. The lines are the log of Debian's package manager and
 * JSON, long, empty and odd ones. Servers that are missing are skipped.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import type { DrainKind, DrainTarget } from "#machines/logs/drains/types.ts";
import { aDrain, drainHost } from "../log-drain-host.ts";
import { until } from "../support.ts";
import { loki, lokiParser, rsyslog, type Server, victoriaLogs } from "./log-judges.ts";

const ODD = [
  '{"level":"error","msg":"größer als ½ 😀","request_id":"r-1","nested":{"a":[1,2]}}',
  '{"level":30,"msg":"pino"}',
  'WARN a tab\there, a quote " and a backslash \\',
  "  leading spaces, <165>1 - - what looks like syslog",
  "12 34 numbers first",
  "x".repeat(9000),
  "the last one",
];
const LINES = [...readFileSync("/var/log/dpkg.log", "utf8").split("\n").filter(Boolean).slice(0, 20_000), ...ODD];

interface Wanted {
  kind: DrainKind;
  target: Partial<DrainTarget> & { url: string };
  /** A server that is ended when it has the first half, and started again; it keeps what it took from here on. */
  restart?: Server & { signal: NodeJS.Signals; keeps?(lines: number): boolean };
}

/** Sends the lines of one machine, interrupted by the end of the server in the middle when `restart` is given. */
async function sent(t: { after(end: () => unknown): void }, { kind, target, restart }: Wanted): Promise<void> {
  const { sending, store, write } = drainHost([aDrain({ kind, target })]);
  t.after(() => sending.close());
  const began = Date.now();
  const half = Math.floor(LINES.length / 2);
  write("m1", LINES.slice(0, half), (index) => began - 60_000 + index);
  await until(
    `${kind} has the first half`,
    async () => {
      await sending.look();
      return store.state("d1")?.sent === half;
    },
    { limit_ms: 60_000 },
  );
  if (restart?.keeps) await until("it is on its disk", () => restart.keeps?.(half));
  await restart?.kill(restart.signal);
  write("m1", LINES.slice(half), (index) => began - 60_000 + half + index);
  if (restart) {
    await sending.look();
    await until("the failure is seen", async () => {
      await sending.look();
      return (store.state("d1")?.failures ?? 0) > 0;
    });
    await restart.start();
  }
  await until(
    `${kind} has all lines: ${store.state("d1")?.last_error ?? ""}`,
    async () => {
      await sending.look();
      return store.state("d1")?.sent === LINES.length;
    },
    { limit_ms: 60_000 },
  );
  assert.equal(store.state("d1")?.refused, 0, store.state("d1")?.last_error ?? "");
}

suite("log drains and foreign log servers", { timeout: 10 * 60_000 }, () => {
  test("rsyslog takes every line over TLS, in order, also when it is killed in between", async (t) => {
    const server = await rsyslog(t);
    if (!server) return;
    const target = { url: server.url, ca: server.ca };
    // It takes messages into memory first, and syslog cannot tell.
    const keeps = (lines: number): boolean => server.lines().length >= lines;
    await sent(t, { kind: "syslog", target, restart: { ...server, signal: "SIGKILL", keeps } });
    const lines = await until("all are written", () =>
      server.lines().length >= LINES.length ? server.lines() : undefined,
    );
    // Its own messages have no machine.
    const parts = lines.map((line) => line.split("|")).filter(([, , host]) => host === "m1-name");
    assert.deepEqual(
      parts.map((fields) => fields.slice(6).join("|")),
      LINES,
    );
    const [pri, time, , app, process, id] = parts.find((fields) => fields.join("|").includes("größer")) ?? [];
    assert.deepEqual([pri, app, process, id], ["11", "web", "m1", "stdout"]);
    assert.ok(Math.abs(Date.parse(time ?? "") - Date.now()) < 600_000, time);
  });

  test("a syslog server whose certificate is not trusted gets nothing", async (t) => {
    const server = await rsyslog(t);
    if (!server) return;
    const { sending, store, write } = drainHost([aDrain({ kind: "syslog", target: { url: server.url } })]);
    t.after(() => sending.close());
    write("m1", ["secret"]);
    const error = await until("it fails", async () => {
      await sending.look();
      return store.state("d1")?.last_error ?? undefined;
    });
    assert.match(error, /self-signed certificate/);
    assert.deepEqual(
      server.lines().filter((line) => line.includes("secret")),
      [],
    );
  });

  test("VictoriaLogs takes JSON lines, with stream, level and time, also when it is restarted in between", async (t) => {
    const server = await victoriaLogs(t);
    if (!server) return;
    await sent(t, { kind: "victorialogs", target: { url: server.url }, restart: { ...server, signal: "SIGTERM" } });
    const found = await until("all are found", async () => {
      const rows = await server.query('{app="web"} | sort by (_time)');
      return rows.length >= LINES.length ? rows : undefined;
    });
    assert.deepEqual(
      found.map(({ _msg }) => _msg),
      LINES,
    );
    const [error] = await server.query('level:="error" "größer"');
    assert.equal(error?.["_stream"], '{app="web",machine="m1-name",machine_id="m1",region="lab",stream="stdout"}');
  });

  test("VictoriaLogs takes OTLP in protobuf, with its resource, severity and attributes", async (t) => {
    const server = await victoriaLogs(t);
    if (!server) return;
    await sent(t, { kind: "otlp", target: { url: `${server.url}/insert/opentelemetry/v1/logs` } });
    const found = await until("all are found", async () => {
      const rows = await server.query('{"service.name"="web"} | sort by (_time)');
      return rows.length >= LINES.length ? rows : undefined;
    });
    assert.deepEqual(
      found.map(({ _msg }) => _msg),
      LINES,
    );
    const odd = found.find(({ _msg }) => _msg?.includes("größer"));
    assert.equal(odd?.["severity"], "ERROR", JSON.stringify(odd));
    assert.deepEqual([odd?.["request_id"], odd?.["log.iostream"]], ["r-1", "stdout"]);
  });

  test("VictoriaLogs takes Loki's push format", async (t) => {
    const server = await victoriaLogs(t);
    if (!server) return;
    await sent(t, { kind: "loki", target: { url: `${server.url}/insert/loki/api/v1/push?disable_message_parsing=1` } });
    const found = await until("all are found", async () => {
      const rows = await server.query('{app="web",machine_id="m1"} | sort by (_time)');
      return rows.length >= LINES.length ? rows : undefined;
    });
    assert.deepEqual(
      found.map(({ _msg }) => _msg),
      LINES,
    );
  });

  test("Loki's own parser reads every line, its labels and its nanoseconds", async (t) => {
    const parser = await lokiParser(t);
    if (!parser) return;
    const began = Date.now();
    await sent(t, { kind: "loki", target: { url: parser.url } });
    const entries = await until("all are read", () =>
      parser.entries().length >= LINES.length ? parser.entries() : undefined,
    );
    assert.deepEqual(
      entries.map(({ line }) => line),
      LINES,
    );
    assert.deepEqual(
      [...new Set(entries.map(({ labels }) => labels))],
      ['{app="web", machine="m1-name", machine_id="m1", region="lab", stream="stdout"}'],
    );
    for (const { at } of entries) assert.ok(Math.abs(Number(at.slice(0, -6)) - began) < 600_000, at);
    assert.deepEqual(
      entries.map(({ at }) => at),
      entries.map(({ at }) => at).toSorted(),
    );
  });

  test("Loki takes its push format, and what it got twice is there once", async (t) => {
    const server = await loki(t);
    if (!server) return;
    await sent(t, { kind: "loki", target: { url: server.url }, restart: { ...server, signal: "SIGKILL" } });
    const found = await until(
      "all are found",
      async () => {
        const rows = await server.query('{app="web",machine_id="m1"}');
        return rows.length >= LINES.length ? rows : undefined;
      },
      { limit_ms: 60_000 },
    );
    assert.deepEqual(
      found.map(({ line }) => line),
      LINES,
    );
  });

  test("Loki takes OTLP", async (t) => {
    const server = await loki(t);
    if (!server) return;
    await sent(t, { kind: "otlp", target: { url: `${server.url}/otlp/v1/logs` } });
    const found = await until(
      "all are found",
      async () => {
        const rows = await server.query('{service_name="web"}');
        return rows.length >= LINES.length ? rows : undefined;
      },
      { limit_ms: 60_000 },
    );
    assert.deepEqual(
      found.map(({ line }) => line),
      LINES,
    );
  });
});
