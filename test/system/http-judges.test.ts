/**
 * The edge proxy and the API before tools that others wrote: h2spec (`go install github.com/summerwind/h2spec/cmd/h2spec`), and
 * of Debian slowhttptest and h2load (nghttp2-client). Each test skips itself where its tool is missing.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { aBackend, aPlane, aTarget, type TestPlane } from "#proxy/fixtures.ts";
import { testPlatform } from "../platform.ts";
import { tempDir } from "../support.ts";

const missing = (program: string): string | false =>
  spawnSync("which", [program]).status === 0 ? false : `this program is missing: ${program}`;

/** A machine behind the proxy, by a name that every box knows. */
async function edge(t: TestContext, { tls }: { tls: boolean }): Promise<TestPlane> {
  const body = Buffer.alloc(256 * 1024, "x");
  const backend = await aBackend(t, (request, response) => {
    request.resume();
    response.end(request.url === "/large" ? body : "all is well");
  });
  const plane = await aPlane(t);
  const app = { hostnames: ["localhost"] };
  await plane.serve({ targets: [aTarget(backend.port)], options: { tls }, app });
  return plane;
}

async function run(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
  return await text(child.stdout);
}

/**
 * What Node's own HTTP/2 server does otherwise than h2spec wants, and so do we: nghttp2 ignores frames for streams that are
 * over, and ends the connection where a stream would do. RFC 9113 allows both, and has dropped priorities.
 */
const OF_NODE = [
  "closed: Sends a DATA frame after sending RST_STREAM frame",
  "closed: Sends a HEADERS frame after sending RST_STREAM frame",
  "closed: Sends a DATA frame",
  "closed: Sends a HEADERS frame",
  // The same: who is answered before the frame comes has a stream that is over.
  "half closed (remote): Sends a DATA frame",
  "half closed (remote): Sends a HEADERS frame",
  "Sends stream identifier that is numerically smaller than previous",
  "Sends PRIORITY frame that depend on itself",
  "Sends a PRIORITY frame with 0x0 stream identifier",
  "Sends a PING frame with ACK",
  "Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream",
];

interface Verdicts {
  all: number;
  failed: string[];
}

function verdictsIn(report: string): Verdicts {
  const cases = [...report.matchAll(/<testcase [^>]*classname="([^"]*)"[^>]*?(\/>|>(.*?)<\/testcase>)/gs)];
  const failed = cases.filter(([, , , inside = ""]) => /<(failure|error)\b/.test(inside));
  return { all: cases.length, failed: failed.map(([, name = ""]) => name) };
}

/** The four attacks of slowhttptest, 300 connections each. */
const SLOW = {
  "slow headers": ["-H", "-i", "1"],
  "a slow body": ["-B", "-i", "1", "-s", "8192"],
  "overlapping ranges": ["-R", "-a", "5", "-b", "2000"],
  "slow reading": ["-X", "-n", "1", "-w", "1", "-y", "64", "-z", "5", "-k", "3"],
};
const CONNECTIONS = "-c 300 -r 150 -l 20 -p 20".split(" ");

async function withstands(t: TestContext, url: string): Promise<void> {
  for (const [name, options] of Object.entries(SLOW)) {
    let [asked, served, over] = [0, 0, false];
    const attack = run("slowhttptest", [...CONNECTIONS, ...options, "-u", url]).finally(() => {
      over = true;
    });
    while (!over) {
      asked++;
      const answer = await fetch(url, { headers: { connection: "close" } });
      await answer.arrayBuffer();
      served += answer.status === 200 ? 1 : 0;
    }
    const said = stripVTControlCharacters(await attack);
    assert.equal(served, asked, `${name}: everybody else is served`);
    assert.match(said, /service available:\s*YES/, `${name}: ${said.slice(-500)}`);
    assert.doesNotMatch(said, /service available:\s*NO/, name);
    t.diagnostic(`${name}: ${served} requests of others were served meanwhile`);
  }
}

suite("HTTP conformance and load tools", () => {
  test("h2spec finds no fault in the edge proxy beyond Node's own", { skip: missing("h2spec") }, async (t) => {
    const { port } = await edge(t, { tls: true });
    const report = join(tempDir(), "h2spec.xml");
    await run("h2spec", ["-t", "-k", "-o", "5", "-h", "localhost", "-p", String(port), "-j", report]);
    const { all, failed } = verdictsIn(readFileSync(report, "utf8"));
    t.diagnostic(`${all} cases, ${failed.length} failed`);
    assert.ok(all > 140, `${all} cases`);
    assert.deepEqual(
      failed.filter((name) => !OF_NODE.includes(name)),
      [],
    );
  });

  test("h2load gets every response, over many streams", { skip: missing("h2load") }, async (t) => {
    const { port } = await edge(t, { tls: true });
    const said = await run("h2load", ["-n", "5000", "-c", "10", "-m", "100", `https://localhost:${port}/`]);
    assert.match(said, /5000 total, 5000 started, 5000 done, 5000 succeeded, 0 failed, 0 errored, 0 timeout/, said);
  });

  test("slowhttptest does not block the edge proxy", { skip: missing("slowhttptest") }, async (t) => {
    const { port } = await edge(t, { tls: false });
    await withstands(t, `http://localhost:${port}/large`);
  });

  test("slowhttptest does not block the API", { skip: missing("slowhttptest") }, async (t) => {
    const { base_url } = await testPlatform(t);
    await withstands(t, `${base_url}/openapi.json`);
  });
});
