/**
 * Whether this host passes on what machines send out over IPv4. That is switched on for its devices to the outside
 * world, and set back to what it was when the last machine network of any installation leaves the host. What it was is
 * written down where a reboot forgets it, as it forgets the setting itself.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** A bridge of any installation on this host. */
const BRIDGE = /^h[0-9a-f]{5}b[0-9a-f]{8}$/;

export interface ForwardingPlaces {
  settings: string;
  devices: string;
  routes: string;
  /** Of the host, not of one installation: they share its devices. */
  before: string;
}

const PLACES: ForwardingPlaces = {
  settings: "/proc/sys/net/ipv4/conf",
  devices: "/sys/class/net",
  routes: "/proc/net/route",
  before: "/run/hangar/forwarding.json",
};

export class Forwarding {
  readonly #places: ForwardingPlaces;

  constructor(places = PLACES) {
    this.#places = places;
  }

  /** Switches it on for a bridge and for the way out. */
  begin(bridge: string): void {
    // Ours alone, and gone with the bridge.
    this.#set(bridge, "1");
    const before = this.#before();
    const closed = this.#uplinks().filter((device) => this.#get(device) === "0");
    if (closed.length === 0) return;
    // First the word of how it was: when we are killed in between, there is nothing to set back and nothing is lost.
    this.#remember({ ...Object.fromEntries(closed.map((device) => [device, "0"])), ...before });
    for (const device of closed) this.#set(device, "1");
  }

  /** Sets back what was switched on, unless another installation's machines still need it. */
  end(): void {
    if (readdirSync(this.#places.devices).some((name) => BRIDGE.test(name))) return;
    for (const [device, value] of Object.entries(this.#before())) this.#set(device, value);
    rmSync(this.#places.before, { force: true });
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

  #get(device: string): string | undefined {
    try {
      return readFileSync(this.#file(device), "utf8").trim();
    } catch {
      return undefined;
    }
  }

  #set(device: string, value: string): void {
    try {
      writeFileSync(this.#file(device), value, { flag: "r+" });
    } catch {
      // A host that does not let us has its own reasons: outbound traffic is then as it wants. Or the device is gone.
    }
  }

  #file(device: string): string {
    return `${this.#places.settings}/${device}/forwarding`;
  }
}
