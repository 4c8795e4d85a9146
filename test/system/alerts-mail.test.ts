/** E-mail to a mail server that wants TLS and a password (python3-aiosmtpd), with certificates of openssl. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { sendMail } from "../../src/alerts/notify/smtp.ts";
import type { EmailConfig } from "../../src/alerts/notify/types.ts";
import { tempDir, until } from "../support.ts";

/** Accepts one user, and writes down how each message came. */
const SERVER = `
import asyncio, json, ssl, sys
from aiosmtpd.smtp import SMTP, AuthResult
cert, key, out, options = sys.argv[1:5]
options = json.loads(options)
if options.pop("tls", True):
    options["tls_context"] = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    options["tls_context"].load_cert_chain(cert, key)
def log(**what):
    with open(out, "a") as f: f.write(json.dumps(what) + "\\n")
def authenticate(server, session, envelope, mechanism, data):
    good = (data.login, data.password) == (b"hangar", "pass word ü".encode())
    log(mechanism=mechanism, tls=session.ssl is not None, good=good)
    return AuthResult(success=good, handled=False)
class Handler:
    async def handle_DATA(self, server, session, envelope):
        log(sender=envelope.mail_from, to=envelope.rcpt_tos, tls=session.ssl is not None, user=session.authenticated)
        return "250 OK"
async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(Handler(), authenticator=authenticate, loop=loop, **options), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
`;
const PASSWORD = "pass word ü";
const MAIL = { subject: "Überlast", text: ".\nline\n", date: new Date(0), message_id: "one" };

interface MailServer {
  port: number;
  ca: string;
  log(): Record<string, unknown>[];
}

async function mailServer(t: TestContext, options: object = {}): Promise<MailServer> {
  const dir = tempDir("hangar-mail");
  const at = (name: string): string => join(dir, name);
  const [cert, key, out] = [at("cert.pem"), at("key.pem"), at("log")];
  const subject = ["-subj", "/CN=mail", "-addext", "subjectAltName=DNS:localhost"];
  const kind = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(" ");
  const made = spawnSync("openssl", kind.concat("-keyout", key, "-out", cert, subject));
  assert.equal(made.status, 0, String(made.stderr));
  const child = spawn("/usr/bin/python3", ["-c", SERVER, cert, key, out, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.after(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += String(text)));
  const port = Number(await until(`the mail server listens: ${said}`, () => /^\d+$/m.exec(said)?.[0]));
  const lines = (): string[] => (existsSync(out) ? readFileSync(out, "utf8").trim().split("\n") : []);
  return { port, ca: readFileSync(cert, "utf8"), log: () => lines().map((line) => JSON.parse(line)) };
}

const configOf = ({ port }: MailServer, more: Partial<EmailConfig> = {}): EmailConfig => ({
  to: ["ops@example.com"],
  from: "hangar@example.com",
  host: "localhost",
  port,
  require_tls: true,
  username: "hangar",
  password: PASSWORD,
  ...more,
});
const send = (config: EmailConfig): Promise<void> => sendMail(config, MAIL, { guarded: false, timeout_ms: 20_000 });

/** What Node trusts is of the process; it is put back at the end. */
function trust(t: TestContext, ca: string): void {
  const before = getCACertificates("default");
  setDefaultCACertificates([...before, ca]);
  t.after(() => setDefaultCACertificates(before));
}

const missing = spawnSync("/usr/bin/python3", ["-c", "import aiosmtpd"]).status !== 0;
suite("e-mail by TLS", { skip: missing && "needs python3-aiosmtpd" }, () => {
  const both = { auth_required: true, require_starttls: true };
  for (const [mechanism, options] of Object.entries({
    PLAIN: both,
    LOGIN: { ...both, auth_exclude_mechanism: ["PLAIN"] },
  }))
    test(`STARTTLS and AUTH ${mechanism} with a server that insists on them`, async (t) => {
      const server = await mailServer(t, options);
      trust(t, server.ca);
      await send(configOf(server));
      assert.deepEqual(server.log(), [
        { mechanism, tls: true, good: true },
        { sender: "hangar@example.com", to: ["ops@example.com"], tls: true, user: true },
      ]);
    });

  test("a wrong password is refused, and the server's text is in the error", async (t) => {
    const server = await mailServer(t, both);
    trust(t, server.ca);
    await assert.rejects(send(configOf(server, { password: "wrong" })), /the mail server answered 535/);
    assert.deepEqual(server.log(), [{ mechanism: "PLAIN", tls: true, good: false }]);
  });

  test("a certificate that nobody vouches for, or of another name, gets no password", async (t) => {
    const server = await mailServer(t, both);
    await assert.rejects(send(configOf(server)), /self-signed certificate/);
    trust(t, server.ca);
    await assert.rejects(send(configOf(server, { host: "127.0.0.1" })), /not in the cert's list|altnames/);
    assert.deepEqual(server.log(), []);
  });

  test("a server without STARTTLS gets nothing, unless that is allowed, and never the password", async (t) => {
    const server = await mailServer(t, { tls: false });
    await assert.rejects(send(configOf(server)), /offers no STARTTLS/);
    await assert.rejects(send(configOf(server, { require_tls: false })), /the password is not sent without TLS/);
    const { username: _, password: __, ...open } = configOf(server, { require_tls: false });
    await send(open);
    assert.deepEqual(server.log(), [{ sender: "hangar@example.com", to: ["ops@example.com"], tls: false, user: null }]);
  });
});
