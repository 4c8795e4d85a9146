import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { Forwarding } from "./forwarding.ts";

const OURS = "h00aabb01234567";
const THEIRS = "h99ccdb89abcdef";
const TUNNEL = "h00aabt01234567";

/** The files in which the kernel keeps it, for a host with two ways out of which one is open already. */
function host() {
  const dir = tempDir("hangar-forwarding");
  const places = {
    settings: join(dir, "net"),
    devices: join(dir, "devices"),
    routes: join(dir, "route"),
    before: join(dir, "run/forwarding.json"),
  };
  const file = (name: string): string => join(places.settings, name);
  const put = (name: string, value: string): void => {
    mkdirSync(dirname(file(name)), { recursive: true });
    writeFileSync(file(name), `${value}\n`);
  };
  const get = (name: string): string => readFileSync(file(name), "utf8").trim();
  const add = (device: string, value: string): void => {
    mkdirSync(join(places.devices, device), { recursive: true });
    put(`ipv4/conf/${device}/forwarding`, value);
  };
  const remove = (device: string): void => {
    for (const family of ["ipv4", "ipv6"]) rmSync(file(`${family}/conf/${device}`), { recursive: true, force: true });
    rmSync(join(places.devices, device), { recursive: true });
  };
  const value = (device: string): string => get(`ipv4/conf/${device}/forwarding`);
  add("eth0", "0");
  add("eth1", "1");
  add("eth2", "0");
  writeFileSync(
    places.routes,
    ["Iface\tDestination", "eth0\t00000000\t0A", "eth1\t00000000\t0A", "eth2\t0000000A\t00", ""].join("\n"),
  );
  return { places, put, get, add, remove, value };
}

suite("IP forwarding on the host", () => {
  test("forwarding is enabled on the uplinks and restored to its old value, also by a later process", () => {
    const { places, add, remove, value } = host();
    add(OURS, "0");
    new Forwarding(places).begin(OURS);
    assert.deepEqual([value("eth0"), value("eth1"), value("eth2"), value(OURS)], ["1", "1", "0", "1"]);
    new Forwarding(places).begin(OURS);
    remove(OURS);
    new Forwarding(places).end();
    assert.deepEqual([value("eth0"), value("eth1"), value("eth2")], ["0", "1", "0"]);
    assert.equal(existsSync(places.before), false);
  });

  test("forwarding stays on while another installation has a network; the last one restores it", () => {
    const { places, add, remove, value } = host();
    for (const bridge of [OURS, THEIRS]) {
      add(bridge, "0");
      new Forwarding(places).begin(bridge);
    }
    remove(OURS);
    new Forwarding(places).end();
    assert.equal(value("eth0"), "1");
    remove(THEIRS);
    new Forwarding(places).end();
    assert.equal(value("eth0"), "0");
  });

  test("a host without networks is left alone, and a removed device is ignored", () => {
    const { places, add, remove, value } = host();
    new Forwarding(places).end();
    assert.equal(value("eth1"), "1", "what was on before is not ours to switch off");
    add(OURS, "0");
    new Forwarding(places).begin(OURS);
    for (const device of ["eth0", OURS]) remove(device);
    new Forwarding(places).end();
    assert.equal(existsSync(join(places.settings, "ipv4/conf/eth0")), false);
  });

  test("IPv6 forwarding is set on the tunnel device only where the kernel supports force_forwarding", () => {
    const { places, put, get } = host();
    put("ipv6/conf/all/forwarding", "0");
    put(`ipv6/conf/${TUNNEL}/force_forwarding`, "0");
    new Forwarding(places).passOn(TUNNEL);
    assert.deepEqual([get(`ipv6/conf/${TUNNEL}/force_forwarding`), get("ipv6/conf/all/forwarding")], ["1", "0"]);
    assert.equal(existsSync(places.before), false, "there is nothing to set back");
  });

  test("on older kernels IPv6 forwarding is on for all devices while a tunnel exists, then restored", () => {
    const { places, put, get, add, remove } = host();
    const BEFORE = { all: ["0", "1"], eth0: ["0", "1"], eth1: ["1", "0"], eth2: ["0", "2"] };
    const now = () => {
      const shown = (device: string) => ["forwarding", "accept_ra"].map((what) => get(`ipv6/conf/${device}/${what}`));
      return Object.fromEntries(Object.keys(BEFORE).map((device) => [device, shown(device)]));
    };
    for (const [device, [forwarding = "", accept_ra = ""]] of Object.entries(BEFORE)) {
      put(`ipv6/conf/${device}/forwarding`, forwarding);
      put(`ipv6/conf/${device}/accept_ra`, accept_ra);
    }
    for (const device of [TUNNEL, THEIRS]) {
      add(device, "0");
      put(`ipv6/conf/${device}/accept_ra`, "0");
      new Forwarding(places).passOn(device);
    }
    assert.deepEqual(now(), { all: ["1", "2"], eth0: ["1", "2"], eth1: ["1", "0"], eth2: ["1", "2"] });
    remove(THEIRS);
    new Forwarding(places).end();
    assert.equal(get("ipv6/conf/all/forwarding"), "1", "a tunnel is still there");
    remove(TUNNEL);
    new Forwarding(places).end();
    assert.deepEqual(now(), BEFORE);
    assert.equal(existsSync(places.before), false);
  });
});
