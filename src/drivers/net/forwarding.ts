/**
 * Whether this host passes on what machines send. Over IPv4 that is switched on for its devices to the outside world;
 * over IPv6, between hosts, for the device alone, or on kernels before 6.17, which cannot, for all of them. All is set
 * back to what it was when the last machine network and the last tunnel of any installation have left the host. What it
 * was is written down where a reboot forgets it, as it forgets the settings themselves.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A bridge or a tunnel of any installation on this host. */
const OURS = /^h[0-9a-f]{5}[bt][0-9a-f]{8}$/;

export interface ForwardingPlaces {
  /** Of the kernel: `ipv4/conf/eth0/forwarding` and so on. */
  settings: string;
  devices: string;
  routes: string;
  /** Of the host, not of one installation: they share its devices. */
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

  /** What machines send out over IPv4 is passed on: from their bridge, and on the way out. */
  begin(bridge: string): void {
    // Ours alone, and gone with the bridge.
    this.#set(ipv4(bridge), "1");
    const closed = this.#uplinks().map(ipv4);
    this.#change(Object.fromEntries(closed.filter((name) => this.#get(name) === "0").map((name) => [name, "1"])));
  }

  /** What comes in at this device is passed on. */
  passOn(device: string): void {
    // Ours alone, and gone with the device.
    this.#set(ipv4(device), "1");
    const own = ipv6(device, "force_forwarding");
    const alone = existsSync(join(this.#places.settings, own));
    if (alone) this.#set(own, "1");
    if (alone || this.#get(ipv6("all", "forwarding")) !== "0") return;
    const devices = readdirSync(join(this.#places.settings, "ipv6/conf"));
    // Who passes packets on no longer learns its own default route from routers; those that did are told to go on.
    const learning = devices.map((one) => ipv6(one, "accept_ra")).filter((name) => this.#get(name) === "1");
    // One word changes it for every device, so it must be known of each how it was.
    const single = devices.filter((one) => one !== "all").map((one) => ipv6(one, "forwarding"));
    this.#change({
      ...Object.fromEntries(learning.map((name) => [name, "2"])),
      ...Object.fromEntries([ipv6("all", "forwarding"), ...single].map((name) => [name, "1"])),
    });
  }

  /** Sets back what was switched on, unless machines still need it, those of another installation, too. */
  end(): void {
    if (readdirSync(this.#places.devices).some((name) => OURS.test(name))) return;
    for (const [name, value] of Object.entries(this.#before())) this.#set(name, value);
    rmSync(this.#places.before, { force: true });
  }

  /** First the word of how it was: when we are killed in between, there is nothing to set back and nothing is lost. */
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

  /** Devices by which this host reaches the rest of the world over IPv4. */
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
      // A host that does not let us has its own reasons: traffic is then as it wants. Or the device is gone.
    }
  }
}
