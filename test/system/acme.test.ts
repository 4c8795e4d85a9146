/** Certificates from an authority (Pebble): http-01, and `*.` names by dns-01 with a program that sets TXT records. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { Authority } from "#proxy/authority.ts";
import { DnsHook, type DnsRecords } from "#proxy/dns-hook.ts";
import { freePort } from "#proxy/fixtures.ts";
import type { AcmeAccount } from "#proxy/store.ts";
import { selfSigned } from "#proxy/x509.ts";
import { tempDir } from "../support.ts";
import { openEdgeProxy, until } from "./edge-proxy-harness.ts";

const PROGRAMS: readonly [string, string][] = [
  ["pebble", "-h"],
  ["pebble-challtestsrv", "-h"],
  ["curl", "--version"],
];
const absent = PROGRAMS.find(([program, flag]) => spawnSync(program, [flag]).error);
const skip = absent && `there is no ${absent[0]} (apt-get install pebble curl)`;

const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.once("error", () => resolve(false)).once("connect", () => socket.destroy(resolve(true) as undefined));
  });

/** Pebble, and a name server that says every name is this box and whose TXT records `hook` sets. */
async function anAuthority(t: TestContext) {
  const dir = tempDir();
  const [acme, management, challenge] = [await freePort(), await freePort(), await freePort()];
  const [dns, records] = [await freePort(), await freePort()];
  const own = selfSigned(["localhost", "127.0.0.1"], Date.now());
  writeFileSync(join(dir, "cert.pem"), own.chain);
  writeFileSync(join(dir, "key.pem"), own.key);
  const pebble = {
    listenAddress: `127.0.0.1:${acme}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: join(dir, "cert.pem"),
    privateKey: join(dir, "key.pem"),
    httpPort: challenge,
    tlsPort: challenge,
    ocspResponderURL: "",
  };
  writeFileSync(join(dir, "pebble.json"), JSON.stringify({ pebble }));
  const started = [
    spawn("pebble", ["-config", join(dir, "pebble.json"), "-dnsserver", `127.0.0.1:${dns}`], {
      stdio: "ignore",
      env: { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_AUTHZREUSE: "0" },
    }),
    spawn(
      "pebble-challtestsrv",
      ["-management", `127.0.0.1:${records}`, "-dns01", `127.0.0.1:${dns}`, "-defaultIPv6", ""].concat(
        ["-http01", "-https01", "-tlsalpn01"].flatMap((flag) => [flag, ""]),
      ),
      { stdio: "ignore" },
    ),
  ];
  t.after(() => started.forEach((child) => void child.kill()));
  await until(() => isOpen(acme));
  await until(() => isOpen(records));
  const hook = join(dir, "dns-hook");
  const calls = join(dir, "calls");
  writeFileSync(
    hook,
    `#!/bin/sh
printf '%s %s %s %s\\n' "$1" "$2" "$3" "\${HANGAR_MASTER_KEY:-no-key}" >> '${calls}'
case $1 in present) path=set-txt ;; *) path=clear-txt ;; esac
exec curl -sf -d "{\\"host\\":\\"$2.\\",\\"value\\":\\"$3\\"}" 'http://127.0.0.1:${records}/'$path
`,
    { mode: 0o755 },
  );
  return {
    dir,
    hook,
    challenge,
    directory: `https://localhost:${acme}/dir`,
    ca: join(dir, "cert.pem"),
    calls: () => (existsSync(calls) ? readFileSync(calls, "utf8").trim().split("\n") : []),
  };
}

type ForTest = Awaited<ReturnType<typeof anAuthority>>;

/** The platform's side of an authority, with what it keeps in `words` and `accounts`. */
function aClient(
  at: Pick<ForTest, "directory"> & { ca?: string },
  records: DnsRecords,
  values = new Map<string, string>(),
) {
  const accounts: AcmeAccount[] = [];
  const authority = new Authority({
    store: {
      account: async () => accounts[0],
      putAccount: async (account) => void accounts.push(account),
      value: async (key) => values.get(key),
      putValue: async (key, value) => void values.set(key, value),
    },
    sealer: new Sealer(new Uint8Array(32)),
    clock: systemClock,
    log: silentLog,
    directory_url: at.directory,
    directory_ca: at.ca === undefined ? undefined : readFileSync(at.ca, "utf8"),
    answer: async () => {},
    records,
  });
  return { authority, values, accounts };
}

/** The names of the certificate that a TLS client is shown. */
async function shownNames(port: number, servername: string): Promise<string | undefined> {
  const socket = connectTls({ port, host: "127.0.0.1", servername, rejectUnauthorized: false });
  try {
    await new Promise<void>((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
    return socket.getPeerCertificate().subjectaltname;
  } finally {
    socket.destroy();
  }
}

suite("certificates from an ACME authority", { skip }, () => {
  test("a name is validated over http-01, a wildcard over dns-01, and TLS clients get both certificates", async (t) => {
    const at = await anAuthority(t);
    process.env["HANGAR_MASTER_KEY"] = "0".repeat(64);
    t.after(() => delete process.env["HANGAR_MASTER_KEY"]);
    const { platform, secure } = await openEdgeProxy(t, (_request, response) => response.end("ok"), {
      HANGAR_ACME_DIRECTORY: at.directory,
      HANGAR_ACME_CA: at.ca,
      HANGAR_ACME_DNS_HOOK: at.hook,
    });
    const config = {
      image: "hangar/hello",
      services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port: at.challenge, handlers: ["http"] }] }],
    };
    await platform.ask("POST /v1/apps/web/machines", { body: { config } });
    await until(() => isOpen(at.challenge));
    for (const hostname of ["shop.example.com", "*.example.com"]) {
      const { status } = await platform.ask("POST /v1/apps/web/certificates/acme", { body: { hostname } });
      assert.equal(status, 201);
      let seen: { status: string; problem?: string } = { status: "" };
      await until(async () => {
        seen = (await platform.ask(`GET /v1/apps/web/certificates/${encodeURIComponent(hostname)}`)).body;
        return seen.status !== "pending";
      });
      assert.deepEqual([seen.status, seen.problem], ["ready", undefined]);
    }
    await until(async () => (await shownNames(secure, "shop.example.com")) === "DNS:shop.example.com");
    await until(async () => (await shownNames(secure, "any.example.com")) === "DNS:*.example.com");
    const [first = "", second = "", ...rest] = at.calls();
    assert.match(first, /^present _acme-challenge\.example\.com [\w-]{43} no-key$/);
    assert.equal(second, first.replace("present", "cleanup"));
    assert.deepEqual(rest, [], "the record is set once, and removed");
  });

  test("a TXT record left by a crash is removed by the next order, and the account is kept", async (t) => {
    const at = await anAuthority(t);
    const values = new Map([["dns-01 *.example.com", "left-behind"]]);
    const { authority, accounts } = aClient(at, new DnsHook(at.hook, silentLog), values);
    for (let n = 0; n < 2; n++) {
      const { chain, key } = await authority.order("*.example.com");
      const leaf = new X509Certificate(chain);
      assert.deepEqual([leaf.subjectAltName, leaf.checkPrivateKey(key)], ["DNS:*.example.com", true]);
    }
    assert.equal(at.calls()[0], "cleanup _acme-challenge.example.com left-behind no-key");
    assert.deepEqual([at.calls().length, values.get("dns-01 *.example.com"), accounts.length], [5, "", 1]);
  });

  test("a failing DNS hook fails the order, and its output is shown to the operator only", async (t) => {
    const at = await anAuthority(t);
    writeFileSync(at.hook, "#!/bin/sh\necho 'password hunter2 is wrong' >&2\nexit 7\n");
    const { authority, values } = aClient(at, new DnsHook(at.hook, silentLog));
    await assert.rejects(authority.order("*.example.com"), ({ message }: Error) => {
      assert.match(message, /the DNS hook failed \(7\) to present the TXT record _acme-challenge\.example\.com/);
      return !message.includes("hunter2");
    });
    assert.notEqual(
      values.get("dns-01 *.example.com"),
      "",
      "whether it was set is not known: the next order cleans up",
    );
  });

  test("a TXT record that is not served fails the order with the authority's reason, and is removed", async (t) => {
    const at = await anAuthority(t);
    const done: string[] = [];
    const forgetful: DnsRecords = {
      present: async () => void done.push("present"),
      cleanup: async () => void done.push("cleanup"),
    };
    const { authority } = aClient(at, forgetful);
    await assert.rejects(authority.order("*.example.com"), /TXT record/i);
    assert.deepEqual(done, ["present", "cleanup"]);
  });

  test("an order is aborted when the platform stops", async (t) => {
    const at = await anAuthority(t);
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const { promise: never, resolve: release } = Promise.withResolvers<void>();
    const slow: DnsRecords = {
      present: () => {
        resolve();
        return never;
      },
      cleanup: async () => {},
    };
    const { authority } = aClient(at, slow);
    const order = authority.order("*.example.com");
    await asked;
    authority.close();
    release();
    await assert.rejects(order, /the platform stops/);
  });
});
