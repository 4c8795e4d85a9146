/**
 * IP forwarding on this host. Over IPv4 it is enabled on the uplinks; over IPv6, between hosts, on the device alone, or
 * on kernels before 6.17, which cannot do that, on all of them. All settings are restored when the last machine network
 * and the last tunnel of any installation are removed. The old values are saved where a reboot deletes them, as it
 * resets the settings themselves.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A bridge or a tunnel of any installation on this host. */
const OURS = /^h[0-9a-f]{5}[bt][0-9a-f]{8}$/;

export interface ForwardingPlaces {
  /** Below /proc/sys/net: `ipv4/conf/eth0/forwarding` and so on. */
  settings: string;
  devices: string;
  routes: string;
  /** Per host, because installations share its devices. */
  before: string;
}

const PLACES: ForwardingPlaces = {
  settings: "/proc/sys/net",
  devices: "/sys/class/net",
  routes: "/proc/net/route",
  before: "/run/hangar/forwarding.json",
};

const ipv4 = (device: string): string => `ipv4/conf/${device}/forwarding`;
const ipv6 = (device: string, what: "forwarding" | "force_forwarding" | "accept_ra"): string =>
  `ipv6/conf/${device}/${what}`;

export class Forwarding {
  readonly #places: ForwardingPlaces;

  constructor(places = PLACES) {
    this.#places = places;
  }

  /** Enables IPv4 forwarding from the machines' bridge and on the uplinks. */
  begin(bridge: string): void {
    // Our own device: the setting is removed with it.
    this.#set(ipv4(bridge), "1");
    const closed = this.#uplinks().map(ipv4);
    this.#change(Object.fromEntries(closed.filter((name) => this.#get(name) === "0").map((name) => [name, "1"])));
  }

  /** Enables forwarding of what this device receives. */
  passOn(device: string): void {
    // Our own device: the setting is removed with it.
    this.#set(ipv4(device), "1");
    const own = ipv6(device, "force_forwarding");
    const alone = existsSync(join(this.#places.settings, own));
    if (alone) this.#set(own, "1");
    if (alone || this.#get(ipv6("all", "forwarding")) !== "0") return;
    const devices = readdirSync(join(this.#places.settings, "ipv6/conf"));
    // A forwarding host ignores router advertisements; devices that accepted them are set to continue.
    const learning = devices.map((one) => ipv6(one, "accept_ra")).filter((name) => this.#get(name) === "1");
    // The global setting changes every device, so the value of each must be saved.
    const single = devices.filter((one) => one !== "all").map((one) => ipv6(one, "forwarding"));
    this.#change({
      ...Object.fromEntries(learning.map((name) => [name, "2"])),
      ...Object.fromEntries([ipv6("all", "forwarding"), ...single].map((name) => [name, "1"])),
    });
  }

  /** Restores the settings, unless machines of any installation still need them. */
  end(): void {
    if (readdirSync(this.#places.devices).some((name) => OURS.test(name))) return;
    for (const [name, value] of Object.entries(this.#before())) this.#set(name, value);
    rmSync(this.#places.before, { force: true });
  }

  /** Saves the old value first: a crash in between loses nothing. */
  #change(wanted: Record<string, string>): void {
    const names = Object.keys(wanted);
    if (names.length === 0) return;
    const known = names.flatMap((name) => [[name, this.#get(name)]].filter(([, value]) => value !== undefined));
    this.#remember({ ...(Object.fromEntries(known) as Record<string, string>), ...this.#before() });
    for (const [name, value] of Object.entries(wanted)) this.#set(name, value);
  }

  #before(): Record<string, string> {
    try {
      return JSON.parse(readFileSync(this.#places.before, "utf8")) as Record<string, string>;
    } catch {
      return {};
    }
  }

  #remember(values: Record<string, string>): void {
    const { before } = this.#places;
    mkdirSync(dirname(before), { recursive: true, mode: 0o711 });
    writeFileSync(`${before}.new`, JSON.stringify(values));
    renameSync(`${before}.new`, before);
  }

  /** Devices with an IPv4 default route. */
  #uplinks(): string[] {
    const routes = readFileSync(this.#places.routes, "utf8").split("\n").slice(1);
    const found = routes.flatMap((line) => {
      const [device = "", destination] = line.split("\t");
      return destination === "00000000" ? [device] : [];
    });
    return [...new Set(found)];
  }

  #get(name: string): string | undefined {
    try {
      return readFileSync(join(this.#places.settings, name), "utf8").trim();
    } catch {
      return undefined;
    }
  }

  #set(name: string, value: string): void {
    try {
      writeFileSync(join(this.#places.settings, name), value, { flag: "r+" });
    } catch {
      // Not permitted by the host, or the device was removed.
    }
  }
}
