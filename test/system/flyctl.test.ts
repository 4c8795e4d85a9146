/**
 * flyctl as it is published, against the listener for Fly's clients: the everyday commands, one after the other. Which work
 * is a table in docs/fly.md; `WRITE=1` writes it.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { flyPlatform } from "../fly-listener.ts";
import { FLYCTL_VERSION, flyctl, flyctlEnv } from "../flyctl.ts";
import { folderOf, shell } from "../support.ts";

const PAGE = join(import.meta.dirname, "../../docs/fly.md");
const [BEGIN, END] = ["<!-- flyctl: written by test/system/flyctl.test.ts -->\n", "<!-- end -->"];

/** Commands in their order; `$M` is a machine, `$V` a volume. A text after ` # ` is what the output has to say. */
const COMMANDS = `apps create web --org personal
apps list # web
deploy --dockerfile Dockerfile # .hangar deploy. in this folder builds and deploys
deploy --dockerfile Dockerfile --depot=false --builder-pool=false # .hangar deploy. in this folder
deploy --image web:1 --ha=false --dns-checks=false # update finished: success
status # web.localhost
releases # complete
deploy --image web:2 --ha=false --dns-checks=false # update succeeded
scale count 2 -y # Created
scale show # local(2)
scale memory 512 # 512
machine list # started
machine status $M # launch
machine stop $M # successfully stopped
machine start $M # has been started
machine restart $M # restarted successfully
machine suspend $M # suspended
machine start $M # has been started
machine cordon $M # done
machine uncordon $M # done
machine update $M --metadata a=b -y # updated successfully
machine clone $M --region local # successfully cloned
machine exec $M "echo hi"
machine leases view $M # No leases
machine run web:3 --region local --name extra # successfully launched
machine destroy $M --force # has been destroyed
volumes create data --size 1 --region local -y # created|Encrypted
volumes list # data
volumes show $V # data
volumes extend $V --size 2 -y # 2
volumes snapshots create $V # Scheduled
volumes snapshots list $V
volumes destroy $V -y # Destroyed
secrets set COLOUR=red --stage # staged|Staged
secrets list # COLOUR
secrets unset COLOUR --stage
secrets keys generate encrypting box # Setting boxv0 encrypting (nacl_secretbox)
secrets keys generate encrypting box # Setting boxv1
secrets keys generate signing seal # Setting sealv0 signing (nacl_auth)
secrets keys list # boxv1
secrets keys delete seal --force # Deleted sealv0
ips allocate-v6 # v6
ips list # v6
ips release 127.0.0.1 # Released
certs list # HOSTNAME
tokens create deploy # FlyV1 hm1_
tokens list # deploy
orgs list # personal
orgs show personal # personal
regions list # local
platform regions # local
platform vm-sizes # shared-cpu-1x
image show # library/web
services list # 8080
checks list
config show # web
logs --no-tail # started
auth whoami # first start
ssh console -C ls
proxy 5000
apps destroy web -y # Destroyed`.split("\n");

/** What works with Fly and not here, and what to do instead. */
const REFUSED: Record<string, string> = {
  "deploy --dockerfile Dockerfile": "has no remote builder: `hangar deploy`",
  "deploy --dockerfile Dockerfile --depot=false --builder-pool=false": "has no remote builder: `hangar deploy`",
  "ssh console -C ls": "needs WireGuard: `hangar ssh`",
  "proxy 5000": "needs WireGuard: `hangar proxy`",
};

const TOML = `app = "web"
primary_region = "local"
[http_service]
  internal_port = 8080
  auto_stop_machines = "off"
[[vm]]
  size = "shared-cpu-1x"
`;

suite("flyctl", () => {
  test("runs the everyday commands unmodified", async (t) => {
    const program = flyctl(t);
    if (program === undefined) return;
    const platform = await flyPlatform(t);
    const { flies } = platform;
    const cwd = folderOf({ "fly.toml": TOML, Dockerfile: "FROM scratch\nCOPY Dockerfile /\n" });
    const env = { ...flyctlEnv(platform), cwd };
    const first = async (what: string): Promise<string> =>
      (await flies(`GET /v1/apps/web/${what}`)).body?.[0]?.id ?? "none";
    const rows: string[] = [];
    for (const line of COMMANDS) {
      const [command = "", wanted = ""] = line.split(" # ");
      const M = command.includes("$M") ? await first("machines?state=started&state=suspended&state=stopped") : "";
      const V = command.includes("$V") ? await first("volumes") : "";
      const { status, stdout, stderr } = await shell(`${program} ${command} < /dev/null`, { ...env, M, V });
      const refused = REFUSED[command];
      assert.equal(status === 0, refused === undefined, `fly ${command}: ${stdout}${stderr}`);
      assert.match(`${stdout}${stderr}`, new RegExp(wanted.replaceAll(/[()]/g, "\\$&")), `fly ${command}`);
      rows.push(`| \`fly ${command.replaceAll(/ -y$| < .*/g, "")}\` | ${refused ?? "works"} |\n`);
    }
    const table = `| command of flyctl ${FLYCTL_VERSION} | here |\n|---|---|\n${rows.join("")}`;
    const page = readFileSync(PAGE, "utf8");
    const [before = "", rest = ""] = page.split(BEGIN);
    const written = `${before}${BEGIN}${table}${END}${rest.split(END)[1] ?? ""}`;
    if (process.env["WRITE"]) writeFileSync(PAGE, written);
    assert.equal(readFileSync(PAGE, "utf8"), written, "the table of docs/fly.md; WRITE=1 writes it");
  });
});
