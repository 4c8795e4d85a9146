import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { systemClock } from "#core/clock.ts";
import { type VirtualClock, virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import { tempDir } from "../../../test/support.ts";
import type { MeasuredMachine } from "../builtin/sources.ts";
import { type MetricsEngine, openMetricsEngine } from "../engine/engine.ts";
import { SCRAPE_LIMITS } from "./limits.ts";
import { Scraper, type TargetState } from "./scraper.ts";

const ORG = "org";
const SECONDS = SCRAPE_LIMITS.interval_ms / 1000;
const PATIENCE = SCRAPE_LIMITS.timeout_ms / 1000;

/** A scraper, a real engine, and targets on loopback instead of a private network. */
class Rig {
  readonly clock: VirtualClock = virtualClock(systemClock.now());
  readonly engine: MetricsEngine;
  readonly scraper: Scraper;
  readonly #t: TestContext;

  constructor(t: TestContext, onImport: () => void = () => undefined) {
    this.#t = t;
    const engine = openMetricsEngine({ dir: tempDir(), clock: systemClock });
    this.engine = engine;
    this.scraper = new Scraper({
      clock: this.clock,
      log: silentLog,
      engine: () => ({
        ...this.engine,
        importTexts(...args) {
          onImport();
          return engine.importTexts(...args);
        },
      }),
      reach: (_machine, port) => ({ host: "127.0.0.1", port }),
    });
    t.after(async () => {
      await this.scraper.close();
      await this.engine.close();
    });
  }

  async serve(answer: RequestListener): Promise<number> {
    return await this.#listen(createServer(answer));
  }

  /** A target that does not speak HTTP, or speaks it incorrectly. */
  async serveRaw(answer: (socket: Socket) => void): Promise<number> {
    return await this.#listen(
      createTcpServer((socket) => {
        socket.on("error", () => undefined);
        socket.once("data", () => answer(socket));
      }),
    );
  }

  add(id: string, port: number, path = "/metrics"): void {
    this.scraper.started(machineOf(id, { port, path }));
  }

  /** Advances one interval, second by second: every scrape ends before the clock moves, except those of `patient`. */
  async round(patient: readonly string[] = []): Promise<TargetState[]> {
    const seconds = SECONDS + (patient.length > 0 ? PATIENCE : 0);
    // One more second, in which reports are batched; some targets may be scraped again in it.
    for (let second = 0; second <= seconds; second++) {
      await this.clock.advance(1000);
      await this.#until(() => !this.#scraping(patient));
    }
    // The patient targets may be scraped again by now; the result of their first scrape is known all the same.
    await this.#until(() => this.scraper.targets(ORG).every(({ last_scrape_ms }) => last_scrape_ms !== undefined));
    return this.scraper.targets(ORG);
  }

  async #until(holds: () => boolean): Promise<void> {
    const deadline = systemClock.now() + 20_000;
    while (!holds()) {
      assert.ok(systemClock.now() < deadline, "a target was not done in time");
      await systemClock.sleep(2);
    }
  }

  #scraping(patient: readonly string[]): boolean {
    return this.scraper.targets(ORG).some(({ machine, scraping }) => scraping && !patient.includes(machine.id));
  }

  async query(query: string): Promise<[labels: Record<string, string>, value: string][]> {
    const time = this.clock.now();
    const bytes = await this.engine.query(ORG, { query, start_ms: time, end_ms: time });
    const { data } = JSON.parse(Buffer.from(bytes).toString()) as {
      data: { result: { metric: Record<string, string>; value: [number, string] }[] };
    };
    return data.result.map(({ metric, value }) => [metric, value[1]]);
  }

  async #listen(server: Server): Promise<number> {
    const sockets = new Set<Socket>();
    server.on("connection", (socket: Socket) => sockets.add(socket));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    this.#t.after(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return (server.address() as AddressInfo).port;
  }
}

function machineOf(id: string, metrics: MeasuredMachine["metrics"]): MeasuredMachine {
  return {
    id,
    org_id: ORG,
    app_id: "a",
    app: "web",
    region: "local",
    host: "0001",
    instance: `instance-${id}`,
    private_ip: "fdaa::1",
    private_ipv4: null,
    boot: "b1",
    handle: null,
    started_at: 0,
    cpus: 1,
    cpu_kind: "shared",
    memory_mb: 256,
    serves: false,
    ...(metrics ? { metrics } : {}),
  };
}

suite("scraper", () => {
  test("scraped samples get the platform's labels and timestamps on a fixed grid (T4)", async (t) => {
    const rig = new Rig(t);
    let requested = "";
    let n = 0;
    const port = await rig.serve((request, response) => {
      requested = `${request.url} ${request.headers.accept}`;
      response.end(`# TYPE jobs counter\njobs{app="forged",queue="q"} ${++n}\nwrong line {\n`);
    });
    rig.add("m1", port, "/stats?all=1");
    const [first] = await rig.round();
    assert.match(requested, /^\/stats\?all=1 application\/openmetrics-text/);
    assert.deepEqual([first?.health, first?.samples], ["up", 1]);
    assert.match(first?.last_error ?? "", /^1 line was not parsed; line 3/);
    const labels = { __name__: "jobs", app: "web", host: "0001", instance: "instance-m1", queue: "q", region: "local" };
    assert.deepEqual(await rig.query("jobs"), [[labels, String(n)]]);
    const [second] = await rig.round();
    const apart = (second?.last_scrape_ms ?? 0) - (first?.last_scrape_ms ?? 0);
    assert.ok(apart > 0 && apart % SCRAPE_LIMITS.interval_ms === 0, `${apart} ms apart`);
    assert.deepEqual((await rig.query("up"))[0]?.[1], "1");
    assert.deepEqual(await rig.engine.metadata(ORG), [["jobs", { type: "counter", help: "", unit: "" }]]);
  });

  test("OpenMetrics and gzip are understood", async (t) => {
    const rig = new Rig(t);
    const port = await rig.serve((_request, response) => {
      response.writeHead(200, {
        "content-type": "application/openmetrics-text; version=1.0.0; charset=utf-8",
        "content-encoding": "gzip",
      });
      response.end(gzipSync("jobs_total 7\n# EOF\nignored 1\n"));
    });
    rig.add("m1", port);
    assert.deepEqual(
      (await rig.round()).map(({ health, last_error }) => [health, last_error]),
      [["up", ""]],
    );
    assert.equal((await rig.query("jobs_total"))[0]?.[1], "7");
    assert.deepEqual(await rig.query("ignored"), []);
  });

  test("a failing target ends its series, reports why, and recovers", async (t) => {
    const rig = new Rig(t);
    let status = 200;
    const port = await rig.serve((_request, response) => response.writeHead(status).end("jobs 1\n"));
    rig.add("m1", port);
    await rig.round();
    status = 500;
    const [down] = await rig.round();
    assert.deepEqual([down?.health, down?.last_error], ["down", "it answered 500"]);
    assert.deepEqual([await rig.query("jobs"), (await rig.query("up"))[0]?.[1]], [[], "0"]);
    status = 200;
    assert.equal((await rig.round())[0]?.health, "up");
    assert.equal((await rig.query("jobs")).length, 1);
    rig.scraper.ended("m1");
    await rig.clock.advance(1000);
    await rig.engine.flush();
    assert.deepEqual([await rig.query("jobs"), await rig.query("up")], [[], []]);
  });

  test("a target that ends during its first scrape leaves nothing open", async (t) => {
    const rig: Rig = new Rig(t, () => rig.scraper.ended("m1"));
    rig.add("m1", await rig.serve((_request, response) => response.end("jobs 1\n")));
    await rig.round();
    await systemClock.sleep(300);
    await rig.clock.advance(1000);
    await rig.engine.flush();
    assert.equal((await rig.query("count_over_time(jobs[5m])")).length, 1, "the samples were stored");
    assert.deepEqual([await rig.query("jobs"), await rig.query("up")], [[], []]);
  });

  test("hostile targets harm only themselves (T5)", async (t) => {
    const rig = new Rig(t);
    const endless = Buffer.alloc(1 << 16, "a 1\n");
    const raw = (text: string) => (socket: Socket) => void socket.write(text);
    const hostile: [id: string, port: number, says: RegExp][] = [
      ["silent", await rig.serveRaw(() => undefined), /no complete response within 10 s/],
      ["slow", await rig.serveRaw(raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\na 1\n")), /no complete response/],
      [
        "huge",
        await rig.serve((_, out) => out.writeHead(200, { "content-length": 2 ** 40 }).end()),
        /larger than 16 MB/,
      ],
      ["endless", await rig.serve((_, out) => pour(out, endless)), /larger than 16 MB/],
      ["bomb", await rig.serve((_, out) => void out.writeHead(200, GZIP).end(BOMB)), /larger than 16 MB/],
      ["not gzip", await rig.serve((_, out) => void out.writeHead(200, GZIP).end("a 1\n")), /cannot be unpacked/],
      [
        "odd",
        await rig.serve((_, out) => void out.writeHead(200, { "content-encoding": "br" }).end("x")),
        /encoding br/,
      ],
      ["elsewhere", await rig.serve((_, out) => void out.writeHead(302, { location: "/" }).end()), /redirect/],
      [
        "headers",
        await rig.serveRaw(raw(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}\r\n\r\n`)),
        /head of its answer is longer/,
      ],
      ["garbage", await rig.serveRaw(raw("\0\0\0 hello\r\n\r\n")), /not HTTP/],
      ["cut", await rig.serveRaw((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\na")), /aborted/],
      ["closed", 1, /ECONNREFUSED/],
    ];
    const good = await rig.serve((_request, response) => response.end("jobs 1\n"));
    for (const [id, port] of hostile) rig.add(id, port);
    rig.add("good", good);
    const targets = await rig.round(["silent", "slow"]);
    const byId = new Map(targets.map((target) => [target.machine.id, target]));
    for (const [id, , says] of hostile) {
      assert.equal(byId.get(id)?.health, "down", id);
      assert.match(byId.get(id)?.last_error ?? "", says, id);
    }
    assert.equal(byId.get("good")?.health, "up");
    assert.equal((await rig.query("jobs")).length, 1);
    const large = await rig.query("scrape_body_too_large_total > 0");
    assert.deepEqual(
      large.map(([{ instance }]) => instance).sort((a = "", b = "") => (a < b ? -1 : 1)),
      ["instance-bomb", "instance-endless", "instance-huge"],
    );
  });
});

const GZIP = { "content-encoding": "gzip" };
const BOMB = gzipSync(Buffer.alloc(64 * 2 ** 20, "a 1\n"));

/** Sends the same bytes repeatedly, as fast as they are read. */
function pour(out: ServerResponse, bytes: Buffer): void {
  const more = (): void => {
    while (!out.destroyed && out.write(bytes));
  };
  out.on("drain", more);
  more();
}
