import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { Forwarding } from "./forwarding.ts";

const OURS = "h00aabb01234567";
const THEIRS = "h99ccdb89abcdef";

/** The files in which the kernel keeps it, for a host with two ways out of which one is open already. */
function host() {
  const dir = tempDir("hangar-forwarding");
  const places = {
    settings: join(dir, "conf"),
    devices: join(dir, "devices"),
    routes: join(dir, "route"),
    before: join(dir, "run/forwarding.json"),
  };
  const add = (device: string, value: string): void => {
    for (const folder of [places.settings, places.devices]) mkdirSync(join(folder, device), { recursive: true });
    writeFileSync(join(places.settings, device, "forwarding"), `${value}\n`);
  };
  const remove = (device: string): void => {
    for (const folder of [places.settings, places.devices]) rmSync(join(folder, device), { recursive: true });
  };
  const value = (device: string): string => readFileSync(join(places.settings, device, "forwarding"), "utf8").trim();
  add("eth0", "0");
  add("eth1", "1");
  add("eth2", "0");
  writeFileSync(
    places.routes,
    ["Iface\tDestination", "eth0\t00000000\t0A", "eth1\t00000000\t0A", "eth2\t0000000A\t00", ""].join("\n"),
  );
  return { places, add, remove, value };
}

suite("passing on what machines send out", () => {
  test("is switched on for the ways out, and set back as it was, also by a later process", () => {
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

  test("stays on as long as another installation has a network here; the last one sets it back", () => {
    const { places, add, remove, value } = host();
    for (const bridge of [OURS, THEIRS]) {
      add(bridge, "0");
      new Forwarding(places).begin(bridge);
    }
    remove(OURS);
    new Forwarding(places).end();
    assert.equal(value("eth0"), "1");
    remove(THEIRS ?? "");
    new Forwarding(places).end();
    assert.equal(value("eth0"), "0");
  });

  test("a host that never had it on is left alone, and a device that is gone is no trouble", () => {
    const { places, add, remove, value } = host();
    new Forwarding(places).end();
    assert.equal(value("eth1"), "1", "what was on before is not ours to switch off");
    add(OURS, "0");
    new Forwarding(places).begin(OURS);
    for (const device of ["eth0", OURS]) remove(device);
    new Forwarding(places).end();
    assert.equal(existsSync(join(places.settings, "eth0")), false);
  });
});
