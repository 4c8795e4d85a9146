/** Machines of one organization against the gateways of others: what they learn, and what answers them. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { gatewayAddress, networkPrefix } from "#machines/names.ts";
import { packagesMissing } from "../debian-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { type DebianMachine, type DebianMachines, debianMachines } from "./debian-machines.ts";

const PACKAGES = ["python3"];

/** Asks a name server for text, as `dig TXT NAME @SERVER [+tcp]` does; prints what it says, or how it is refused. */
const DIG = `
import socket, struct, sys
how, server, name = sys.argv[1:]
labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
question = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\\0" + struct.pack(">HH", 16, 1)
try:
    if how == "udp":
        asker = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        asker.settimeout(3)
        asker.sendto(question, (server, 53))
        answer = asker.recv(4096)
    else:
        asker = socket.create_connection((server, 53), 3)
        asker.sendall(struct.pack(">H", len(question)) + question)
        answer = asker.recv(4096)[2:]
    print("code", answer[3] & 15 if answer else "none", answer[12 + len(labels) + 5:])
except OSError as problem:
    print("closed", problem)
`;
/** Whether a TCP port answers. */
const CONNECT = `
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)
    print("open")
except OSError as problem:
    print("closed", problem)
`;

suite("gateways of other organizations", { skip: realMachinesMissing() ?? packagesMissing(PACKAGES) }, () => {
  let box: DebianMachines;
  let neighbour: DebianMachines;
  let attacker: DebianMachine;
  let sibling: DebianMachine;
  let victim: DebianMachine;
  let stranger: DebianMachine;

  before(async () => {
    box = await debianMachines(PACKAGES);
    const { platform } = box;
    for (const org of ["mallory", "victim"])
      assert.equal((await platform.ask("POST /v1/orgs", { body: { name: org } })).status, 201);
    for (const [app_name, org_slug] of [
      ["probe", "mallory"],
      ["bank", "victim"],
    ])
      assert.equal((await platform.ask("POST /v1/apps", { body: { app_name, org_slug } })).status, 201);
    // Another installation on the same box.
    neighbour = await debianMachines(PACKAGES);
    await neighbour.platform.ask("POST /v1/apps", { body: { app_name: "elsewhere", org_slug: "personal" } });
    [attacker, sibling, victim, stranger] = await Promise.all([
      box.machine("probe"),
      box.machine("probe"),
      box.machine("bank"),
      neighbour.machine("elsewhere"),
    ]);
    await until("names of the own network are answered", async () => {
      const said = await box.python(victim, DIG, "udp", gatewayAddress(victim.private_ip), "_apps.internal");
      return said.includes("bank");
    });
  });

  after(async () => {
    await box?.close();
    await neighbour?.close();
  });

  const asked = (how: string, server: string, name: string) => box.python(attacker, DIG, how, server, name);

  test("a machine queries DNS and the machine API at its own gateway, over UDP and TCP", async () => {
    const own = gatewayAddress(attacker.private_ip);
    for (const how of ["udp", "tcp"]) assert.match(await asked(how, own, "_apps.internal"), /^code 0 .*probe/);
    assert.match(await asked("udp", own, "_instances.internal"), new RegExp(sibling.id));
    assert.doesNotMatch(await asked("udp", own, "_apps.internal"), /bank/);
    assert.equal(await box.python(attacker, CONNECT, own, "4280"), "open");
  });

  test("another organization's gateway answers neither DNS nor the machine API", async () => {
    const gateways = [victim, stranger].map(({ private_ip }) => gatewayAddress(private_ip));
    const names = ["_apps.internal", "_instances.internal", "vms.bank.internal"];
    const queries = gateways.flatMap((gateway) =>
      ["udp", "tcp"].flatMap((how) => names.map((name) => asked(how, gateway, name))),
    );
    const calls = gateways.map((gateway) => box.python(attacker, CONNECT, gateway, "4280"));
    for (const said of await Promise.all([...queries, ...calls])) assert.match(said, /^closed/);
  });

  test("an organization's network prefix cannot be computed from its id", async () => {
    const { body } = await box.platform.ask("GET /v1/orgs");
    const orgs = body.organizations as { id: string; slug: string }[];
    const { id } = orgs.find(({ slug }) => slug === "victim") ?? assert.fail(JSON.stringify(body));
    const digits = createHash("sha256").update(`${id}/default`).digest("hex");
    const computed = networkPrefix(`fdaa:${digits.slice(0, 4)}:${digits.slice(4, 8)}::1`);
    assert.notEqual(networkPrefix(victim.private_ip), computed.replaceAll(/(?<=:)0{1,3}(?=[0-9a-f])/g, ""));
  });
});
