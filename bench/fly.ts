/** The listener for Fly's clients next to the main one: the same request of the same process, in CPU time. */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { load, Measured } from "./load/measured.ts";
import { installed } from "./processes.ts";
import { median, type Report } from "./report.ts";

const SECONDS = 2;
/** The two take turns, so that a slow while of the machine meets both. */
const TURNS = 5;
const CONNECTIONS = 32;

export async function run(report: Report): Promise<void> {
  report.section(`GET /v1/apps/{app} with a token, ${CONNECTIONS} connections, one core`);
  if (!installed("wrk")) return report.skip("GET", "there is no wrk (apt-get install wrk)");
  const dir = mkdtempSync(join(tmpdir(), "hangar-bench-"));
  const fly_port = await freePort();
  const args = ["--data-dir", dir, "--listen", "127.0.0.1:0", "--fly-listen", `127.0.0.1:${fly_port}`];
  const server = await Measured.start("src/main.ts", args, /^ +API /);
  try {
    const headers = { authorization: `Bearer ${readFileSync(join(dir, "token"), "utf8").trim()}` };
    const body = JSON.stringify({ app_name: "measured" });
    const sent = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body };
    const made = await fetch(`http://127.0.0.1:${server.port}/v1/apps`, sent);
    if (!made.ok) throw new Error(`the app was not made: ${await made.text()}`);
    const cost = (port: number) => cpuMicroseconds(server, port, headers.authorization);
    const [main, fly, ratios]: [number[], number[], number[]] = [[], [], []];
    for (let turn = 0; turn <= TURNS; turn++) {
      const [one, other] = [await cost(server.port), await cost(fly_port)];
      // The first turn warms both up.
      if (turn === 0) continue;
      main.push(one);
      fly.push(other);
      ratios.push(other / one);
    }
    report.add({ what: "main listener: CPU time of a request", value: median(main), unit: "µs" });
    report.add({ what: "Fly's listener: CPU time of a request", value: median(fly), unit: "µs" });
    report.add({ what: "Fly's listener to the main one", value: median(ratios), unit: "x", at_most: 1.2 });
  } finally {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function cpuMicroseconds(server: Measured, port: number, authorization: string): Promise<number> {
  const before = server.cpuSeconds();
  const { requests } = await load("wrk", [
    "-t1",
    `-c${CONNECTIONS}`,
    `-d${SECONDS}s`,
    `-s${join(import.meta.dirname, "load/report.lua")}`,
    `-HAuthorization: ${authorization}`,
    `http://127.0.0.1:${port}/v1/apps/measured`,
  ]);
  return ((server.cpuSeconds() - before) * 1e6) / requests;
}

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, "close");
  return port;
}
