/** Our DNS messages with other people's programs: dig and drill. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { suite, type TestContext, test } from "node:test";
import { RCODES, readQuestion, writeAnswer } from "#network/dns/message.ts";
import { shell } from "../support.ts";

const missing = (program: string, from: string): string | undefined =>
  spawnSync(program, ["-v"]).error ? `there is no ${program} (apt-get install ${from})` : undefined;

/** A name server for `web.internal` with two addresses and a text; everything else does not exist. */
async function nameServer(t: TestContext): Promise<number> {
  const server = createSocket("udp4", (message, from) => {
    const question = readQuestion(message);
    if (!question) return;
    const all = [
      { type: "A" as const, address: "172.16.0.2" },
      { type: "AAAA" as const, address: "fdaa:1:2::3" },
      { type: "TXT" as const, text: 'quoted "text", comma' },
    ];
    const records = all.filter(({ type }) => question.type === type || question.type === "ANY");
    const known = question.name === "web.internal";
    const answer = writeAnswer(question, known ? RCODES.ok : RCODES.no_name, known ? records : []);
    server.send(answer, from.port, from.address);
  });
  await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return server.address().port;
}

suite("DNS responses read by other clients", () => {
  test("dig reads every record type, EDNS sizes and options, and mixed-case names", {
    skip: missing("dig", "bind9-dnsutils"),
  }, async (t) => {
    const port = await nameServer(t);
    const dig = async (...args: string[]): Promise<string> =>
      (await shell(`dig @127.0.0.1 -p ${port} +tries=1 +timeout=30 ${args.join(" ")}`, {})).stdout;
    assert.equal(await dig("+short", "web.internal", "A"), "172.16.0.2\n");
    assert.equal(await dig("+short", "WeB.InTeRnAl", "AAAA"), "fdaa:1:2::3\n");
    assert.equal(await dig("+short", "web.internal", "TXT"), '"quoted \\"text\\", comma"\n');
    for (const options of ["+noedns", "+bufsize=4096 +dnssec +cookie", "+subnet=192.0.2.0/24 +nsid +padding=128"]) {
      const seen = await dig("+qr +notcp", options, "web.internal", "ANY");
      assert.match(seen, /status: NOERROR/);
      assert.match(seen, /flags: qr aa rd ra; QUERY: 1, ANSWER: 3/);
      assert.doesNotMatch(seen, /malformed|Warning|extra bytes|ID mismatch/i);
    }
    assert.match(await dig("no.internal", "A"), /status: NXDOMAIN/);
  });

  test("drill reads the same records", { skip: missing("drill", "ldnsutils") }, async (t) => {
    const port = await nameServer(t);
    const { stdout } = await shell(`drill -p ${port} web.internal @127.0.0.1 AAAA`, {});
    assert.match(stdout, /rcode: NOERROR/);
    assert.match(stdout, /^web\.internal\.\t5\tIN\tAAAA\tfdaa:1:2::3$/m);
  });
});
