/**
 * A name that is public when it is checked and private when it is connected to, by a live resolver: a DNS server of the
 * test's own, in a network of its own, that the system's resolver asks. The gateway and image pulls meet it; where webhooks go
 * only a full-access token says.
 */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTls } from "node:https";
import { type AddressInfo, isIP } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { isPublicAddress } from "#core/public-addresses.ts";
import { digestOf } from "#drivers/images/blobs.ts";
import { file, makeImage, NEVER, openStore, tar } from "#drivers/images/fixtures.ts";
import { selfSigned } from "#proxy/x509.ts";
import { inside as aPlatform } from "../inside.ts";
import { runs, tempDir } from "../support.ts";
import { inside } from "./own-namespace.ts";

const PUBLIC = "93.184.216.34";
const INSIDE = ["127.0.0.1", "169.254.169.254"];
const NAME = "rebind.example";
const SETUP = `ip link set lo up && ip addr add ${PUBLIC}/32 dev lo && ip addr add ${INSIDE[1]}/32 dev lo &&
mount --bind "$1" /etc/resolv.conf && shift && exec "$@"`;

/** Answers A questions with what the test says, which may be another thing each time. Nothing may be remembered. */
async function nameServer(t: TestContext): Promise<{ answers: string[][]; asked: number }> {
  const state = { answers: [] as string[][], asked: 0 };
  const server = createSocket("udp4", (query, from) => {
    const end = query.indexOf(0, 12) + 5;
    const isA = query.readUInt16BE(end - 4) === 1;
    const given = isA ? (state.answers[Math.min(state.asked++, state.answers.length - 1)] ?? []) : [];
    const head = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x81, 0x80, 0, 1, 0, given.length, 0, 0, 0, 0]);
    const records = given.map((ip) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...ip.split(".").map(Number)]),
    );
    server.send(Buffer.concat([head, query.subarray(12, end), ...records]), from.port, from.address);
  });
  server.bind(53, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return state;
}

/** A server at the public address, and at the same port of the private ones servers that must get no request. */
async function servers(t: TestContext, serve: RequestListener, tls?: { key: string; cert: string }) {
  const seen = { outside: 0, inside: [] as string[] };
  let port = 0;
  for (const address of [PUBLIC, ...INSIDE]) {
    const listener: RequestListener = (request, response) => {
      if (address === PUBLIC) seen.outside++;
      else seen.inside.push(`${address}${request.url}`);
      // Each request on a connection of its own: every one is a lookup.
      response.setHeader("connection", "close");
      serve(request, response);
    };
    const server = tls ? createTls(tls, listener) : createServer(listener);
    server.on("connection", ({ localAddress }) => {
      if (localAddress !== PUBLIC) seen.inside.push(`connection to ${localAddress}`);
    });
    await once(server.listen(port, address), "listening");
    ({ port } = server.address() as AddressInfo);
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
  }
  return { seen, host: `${NAME}:${port}` };
}

/** What the name leads to, one answer after the other; the last one stays. */
const SCHEMES: Record<string, string[][]> = {
  "public once, then loopback": [[PUBLIC], ["127.0.0.1"]],
  "both at once": [[PUBLIC], [PUBLIC, "127.0.0.1"]],
  "public once, then a metadata service": [[PUBLIC], ["169.254.169.254"]],
  "private all the time": [["127.0.0.1"]],
};

/** Without those of earlier tests: OpenSSL takes any certificate of the same name for the issuer. */
const AUTHORITIES = getCACertificates("default");

const resolv = join(tempDir(), "resolv.conf");
writeFileSync(resolv, "nameserver 127.0.0.1\noptions attempts:5\n");
const command = ["unshare", "--net", "--mount", "sh", "-c", SETUP, "sh", resolv];
const runs_here = process.platform === "linux" && process.getuid?.() === 0;

if (!runs_here || (await inside(command, import.meta.filename)))
  suite("DNS rebinding", { skip: runs_here ? false : "namespaces need root on Linux" }, () => {
    test("control: a program that checks a name and then connects by name is exploited", async (t) => {
      const dns = await nameServer(t);
      const { seen, host } = await servers(t, (_request, response) => response.end("secret"));
      dns.answers = [[PUBLIC], ["127.0.0.1"]];
      const { address } = await lookup(NAME);
      assert.ok(isIP(address) && isPublicAddress(address));
      assert.equal(await (await fetch(`http://${host}/`)).text(), "secret");
      assert.ok(seen.inside.length > 0);
    });

    for (const [name, answers] of Object.entries(SCHEMES).slice(0, runs(2, 4, 4))) {
      test(`${name}: the gateway never connects to a private address`, async (t) => {
        const dns = await nameServer(t);
        const { seen, host } = await servers(t, (_request, response) => response.end("secret"));
        const platform = await aPlatform(t);
        const machine = await platform.machine("m");
        const made = await platform.ask("POST /v1/oauth/connections/custom_api", {
          body: {
            name: "c",
            base_api_url: `http://${host}`,
            access_token: "canary-token-1234",
            auth_method: "header",
            access_policy: { allow_all: true },
          },
        });
        dns.answers = answers;
        dns.asked = 0;
        const statuses: number[] = [];
        for (let i = 0; i < 3; i++)
          statuses.push(
            (await platform.from(machine, `GET /v1/gateway/custom_api/${made.body.connection.id}/x`)).status,
          );
        const first = answers[0]?.[0] === PUBLIC ? 200 : 403;
        assert.deepEqual(statuses, [first, 403, 403]);
        assert.deepEqual(seen.inside, []);
        assert.equal(seen.outside, first === 200 ? 1 : 0);
      });

      test(`${name}: image pulls never connect to a private address`, async (t) => {
        const dns = await nameServer(t);
        const { chain: cert, key } = selfSigned([NAME], Date.now());
        setDefaultCACertificates([...AUTHORITIES, cert]);
        const image = makeImage([tar(file("app", "run me"))]);
        const blobs = new Map(image.blobs).set(image.digest, image.manifest);
        const serve: RequestListener = ({ url = "" }, response) => {
          const which = url.endsWith("/manifests/1") ? digestOf(image.manifest) : (url.split("/").at(-1) ?? "");
          response.writeHead(blobs.has(which) ? 200 : 404).end(blobs.get(which));
        };
        const { seen, host } = await servers(t, serve, { key, cert });
        const images = await openStore(t, { limits: { retry_ms: 1 } });
        dns.answers = answers;
        dns.asked = 0;
        await assert.rejects(
          async () =>
            await images.hold({ id: "m", org_id: "org" }, await images.resolve(`${host}/web:1`, "org", NEVER), NEVER),
          { code: "address_refused" },
        );
        assert.deepEqual(seen.inside, []);
        assert.equal(seen.outside, answers[0]?.[0] === PUBLIC ? 1 : 0);
      });
    }
  });
