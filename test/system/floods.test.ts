/** Floods of one app beside the requests of another, at one port of the edge proxy: the neighbour is answered all the while. */
import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { aBackend, aPlane, aTarget } from "#proxy/fixtures.ts";
import { runs, until } from "../support.ts";
import { Child } from "./child.ts";
import { askedMeanwhile, beside } from "./neighbour.ts";

const KINDS = ["rapid reset", "CONTINUATION", "HPACK", "PING", "slow bodies"];
const REQUESTS = runs(10, 500, 5000);
/** What the attacker has sent at least. */
const WRITES = 100;
/** How often the attacker reports before it is killed: five times a second. */
const REPORTS = runs(3, 50, 500);

/** Two apps at one port; its number. */
async function house(t: TestContext): Promise<number> {
  const plane = await aPlane(t);
  for (const [slot, app_name] of ["web", "quiet"].entries()) {
    const backend = await aBackend(t, (request, response) => {
      request.resume().on("end", () => response.end(app_name));
    });
    await plane.serve({ app: { app_name }, targets: [aTarget(backend.port, { slot })], options: { tls: true } });
  }
  return plane.port;
}

/** A new connection each time: that is what a crowd would keep somebody from. */
async function honest(port: number): Promise<void> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, {
    servername: "quiet.localhost",
    rejectUnauthorized: false,
  });
  const failed = new Promise<never>((_, reject) => session.on("error", reject));
  const stream = session.request({ ":path": "/", ":authority": "quiet.localhost" });
  assert.equal(await Promise.race([text(stream), failed]), "quiet");
  session.close();
}

suite("floods at the edge proxy", () => {
  for (const kind of KINDS)
    test(`${kind}: a neighbour's requests are answered while it goes on`, async (t) => {
      const port = await house(t);
      const quiet = await askedMeanwhile(
        () => honest(port),
        REQUESTS,
        () => true,
      );
      const attacker = new Child(process.execPath, [
        join(import.meta.dirname, "flooder.ts"),
        kind,
        String(port),
        "web.localhost",
      ]);
      t.after(() => attacker.kill());
      const sent = (): [number, number] => (attacker.lines.at(-1) ?? "0 0").split(" ").map(Number) as [number, number];
      await until("the flood has begun", () => sent()[1] > 0);
      const began = attacker.lines.length;
      const loud = await askedMeanwhile(
        () => honest(port),
        REQUESTS,
        () => attacker.lines.length >= began + REPORTS && sent()[1] > WRITES,
      );
      const [connections, writes] = sent();
      t.diagnostic(`${beside(quiet, loud)}, beside ${writes} writes of ${connections} connections`);
    });
});
