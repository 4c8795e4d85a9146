/**
 * The private network across boxes: machines of one organization reach each other by address and by name, the front
 * door reaches and wakes them, other organizations and strangers do not, whatever they claim to be.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { postgresMissing } from "../postgres.ts";
import { programLayer, realMachinesMissing } from "../rootfs.ts";
import { runs } from "../support.ts";
import { aHouse, type ControlBox, type HostBox, type House } from "./hosts-house.ts";
import { until } from "./hosts-support.ts";

/** Answers every request with its own id. */
const SERVE = 'mkdir -p /www; echo "$SVC_MACHINE_ID" > /www/index.html; exec httpd -f -p "[::]:80" -h /www';
const PORT = 8080;
const CONFIG = {
  image: "busybox",
  init: { exec: ["sh", "-c", SERVE] },
  guest: { cpus: 1, memory_mb: 256 },
  services: [{ protocol: "tcp", internal_port: 80, autostart: true, ports: [{ port: PORT, handlers: ["http"] }] }],
};

/** The same by a program that listens on IPv4 alone, behind another port. */
const PORT4 = 8081;
const CONFIG4 = {
  ...CONFIG,
  init: { exec: ["sh", "-c", SERVE.replace("[::]:80", "0.0.0.0:80")] },
  services: [{ protocol: "tcp", internal_port: 80, ports: [{ port: PORT4, handlers: ["http"] }] }],
};

interface Made {
  id: string;
  private_ip: string;
  path: string;
  host: HostBox;
}

async function aMachine(
  control: ControlBox,
  app: string,
  region: string,
  host: HostBox,
  config: object = CONFIG,
): Promise<Made> {
  const made = await control.ask("POST", `/v1/apps/${app}/machines`, { config, region });
  const id = String(made["id"]);
  const path = `/v1/apps/${app}/machines/${id}`;
  await control.ask("GET", `${path}/wait?state=started&timeout=60`);
  return { id, private_ip: String(made["private_ip"]), path, host };
}

/** The response to a machine's request to an address or a name; empty without a response. */
async function asks(control: ControlBox, from: Made, host: string): Promise<string> {
  const command = ["curl", "-gsm", "2", `http://${host}/`];
  return String((await control.ask("POST", `${from.path}/exec`, { command, timeout: 20 }))["stdout"]).trim();
}

function pidOf({ id, host }: Made): number {
  const file = join(host.data_dir, "machines", id, "machine.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { pid: number }).pid;
}

/** As the box's root in a machine's network: with rights that nobody in the machine has. */
const inside = (machine: Made, ...words: string[]): number | null =>
  machine.host.box.run("nsenter", `--net=/proc/${pidOf(machine)}/ns/net`, ...words).status;

/** How many pings a machine got. */
const pinged = (machine: Made): number =>
  Number(/^Icmp6InEchos\s+(\d+)/m.exec(readFileSync(`/proc/${pidOf(machine)}/net/snmp6`, "utf8"))?.[1]);

/**
 * A box on the same wire that is not of the platform, but knows everything about it: the number of its network, the
 * neighbour's hardware address, and an address that a machine of another host has.
 */
async function aStranger(house: House, target: Made, claimed: string): Promise<() => void> {
  const { box: there, data_dir } = target.host;
  const device = `h${readFileSync(join(data_dir, "node_id"), "utf8").slice(0, 5)}t`;
  const links = JSON.parse(there.run("ip", "-d", "-j", "link", "show", "type", "vxlan").stdout) as Vxlan[];
  const link = links.find(({ ifname }) => ifname.startsWith(device)) ?? assert.fail();
  const box = await house.lan.box();
  for (const words of [
    `link add x type vxlan id ${link.linkinfo.info_data.id} local ${box.address} remote ${there.address} dstport 4789`,
    "link set x up",
    `address add ${claimed}/128 dev x nodad`,
    `-6 route add ${target.private_ip}/128 dev x src ${claimed}`,
    `-6 neigh add ${target.private_ip} lladdr ${link.address} dev x`,
  ])
    assert.equal(box.run("ip", ...words.split(" ")).status, 0, words);
  return () => void box.run("busybox", "ping", "-6", "-c", "2", "-W", "1", "-I", claimed, target.private_ip);
}

interface Vxlan {
  ifname: string;
  address: string;
  linkinfo: { info_data: { id: number } };
}

const pings = (from: Made, source: string, to: Made): boolean =>
  inside(from, "busybox", "ping", "-6", "-c", "1", "-W", "2", "-I", source, to.private_ip) === 0;

/** The first request through the edge proxy, which may have to wake somebody. */
async function served(control: ControlBox, port = PORT): Promise<string> {
  const answer = await fetch(`http://${control.box.address}:${port}/`);
  const words = (await answer.text()).trim();
  return answer.ok ? words : "";
}

function missingFor(carrier: string): string | undefined {
  const found = (program: string): boolean => spawnSync("which", [program]).status === 0;
  const missing = realMachinesMissing() ?? postgresMissing() ?? (found("curl") ? undefined : "there is no curl here");
  if (missing || carrier === "vxlan") return missing;
  // The same test as over VXLAN, and a second minute.
  if (runs(0, 1) === 0) return "takes a minute: npm run prove -- system/hosts";
  if (found("wg") && found("wireguard-go")) return undefined;
  return "there is no WireGuard here (apt-get install wireguard-tools wireguard-go)";
}

for (const carrier of ["vxlan", "wireguard"]) {
  suite(`the private network between hosts, over ${carrier}`, { skip: missingFor(carrier) }, () => {
    test("machines and the edge proxy reach across hosts; other organizations and spoofed addresses do not", async (t) => {
      const house = await aHouse(t, "--host-network", carrier);
      programLayer(join(house.images, "busybox"), "/usr/bin/curl", "curl");
      const control = await house.control();
      const [here, there] = [await house.host("--region", "r1"), await house.host("--region", "r2")];
      await control.ask("POST", "/v1/orgs", { name: "other" });
      for (const [app_name, org_slug] of [
        ["web", "personal"],
        ["alien", "other"],
      ])
        await control.ask("POST", "/v1/apps", { app_name, org_slug });
      const [one, two, alien] = await Promise.all([
        aMachine(control, "web", "r1", here),
        aMachine(control, "web", "r2", there),
        aMachine(control, "alien", "r2", there),
      ]);

      await until("by address, both ways", async () => {
        const said = await Promise.all([
          asks(control, one, `[${two.private_ip}]`),
          asks(control, two, `[${one.private_ip}]`),
        ]);
        return said[0] === two.id && said[1] === one.id;
      });
      // The name server of a host begins with the network, and hears of machines elsewhere in its own time.
      await until("by name", async () => (await asks(control, one, `${two.id}.vm.web.internal`)) === two.id);
      const token = ["-X", "POST", "http://machine/v1/tokens/oidc", "--data", '{"aud":"test"}'];
      const command = ["curl", "-sm", "5", "--unix-socket", "/.svc/api", ...token];
      const says = async ({ path }: Made, words: readonly string[]): Promise<string> =>
        String((await control.ask("POST", `${path}/exec`, { command: words }))["stdout"]);
      await until("the API inside machines gives a token there", async () =>
        (await says(two, command)).startsWith("eyJ"),
      );
      await until("both are found under the app's name", async () => {
        const names = await says(one, ["nslookup", "web.internal"]);
        return [one, two].every(({ private_ip }) => names.includes(private_ip));
      });

      // The other organization's machine is on the same box as one of ours, and its network has ways there too.
      assert.equal(await asks(control, one, `[${alien.private_ip}]`), "", "another organization's");
      assert.equal(await asks(control, alien, `[${one.private_ip}]`), "", "and back");
      await until("under its own address", async () => pings(one, one.private_ip, two));
      const claimed = alien.private_ip.replace(/[^:]+$/, "99");
      assert.equal(inside(one, "ip", "addr", "add", `${claimed}/64`, "dev", "eth0", "nodad"), 0);
      assert.ok(!pings(one, claimed, alien), "under an address of the other organization");
      const sibling = two.private_ip.replace(/[^:]+$/, "99");
      assert.equal(inside(one, "ip", "addr", "add", `${sibling}/64`, "dev", "eth0", "nodad"), 0);
      assert.ok(!pings(one, sibling, two), "under an address of another host");

      if (carrier === "vxlan") {
        const knock = await aStranger(house, two, one.private_ip);
        const before = pinged(two);
        knock();
        assert.equal(pinged(two), before, "nothing of a stranger's arrives");
        const rules = `hangar_${readFileSync(join(there.data_dir, "node_id"), "utf8").trim()}_far`;
        await until("without the rules it would", async () => {
          there.box.run("nft", "delete", "table", "inet", rules);
          knock();
          return pinged(two) > before;
        });
      }

      await control.ask("POST", "/v1/apps/web/ip_assignments", { type: "shared_v4" });
      await control.ask("POST", "/v1/apps", { app_name: "four", org_slug: "personal" });
      await control.ask("POST", "/v1/apps/four/ip_assignments", { type: "shared_v4" });
      const four = await aMachine(control, "four", "r2", there, CONFIG4);
      await until(
        "the edge proxy reaches a program on IPv4 alone on the other box",
        async () => (await served(control, PORT4)) === four.id,
      );
      const shown = there.box.run(
        "nsenter",
        `--net=/proc/${pidOf(four)}/ns/net`,
        "ip",
        "-4",
        "-o",
        "addr",
        "show",
        "eth0",
      );
      const ipv4 = /inet ([\d.]+)/.exec(shown.stdout)?.[1] ?? assert.fail(shown.stdout);
      assert.equal(await asks(control, two, ipv4), four.id, "a machine of its network on the same box");
      assert.equal(await asks(control, alien, ipv4), "", "another organization's, on the same box");
      assert.equal(await asks(control, one, ipv4), "", "machines on other boxes use IPv6");

      await control.ask("POST", `${one.path}/stop`);
      await until("the edge proxy reaches the other box", async () => (await served(control)) === two.id);
      await control.ask("POST", `${two.path}/suspend`);
      // A request may have woken it before it reached the other.
      await control.call("POST", `${one.path}/stop`);
      const rests = async ({ path }: Made): Promise<boolean> =>
        /suspended|stopped/.test(String((await control.ask("GET", path))["state"]));
      await until("both rest", async () => (await rests(one)) && (await rests(two)));
      await until("a request wakes a machine on another box", async () =>
        [one.id, two.id].includes(await served(control)),
      );
    });
  });
}
