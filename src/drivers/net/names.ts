/** What this installation's network devices are called. */
import { createHash } from "node:crypto";

export const digest = (text: string): string => createHash("sha256").update(text).digest("hex");

/**
 * Builds a device name of fifteen characters: `h`, five of this installation, the kind, eight of the owner. So all
 * devices of an installation share a prefix.
 */
export const deviceName = (node_id: string, kind: "b" | "v" | "t", whose: string): string =>
  `${devicePrefix(node_id)}${kind}${digest(whose).slice(0, 8)}`;
export const devicePrefix = (node_id: string): string => `h${node_id.slice(0, 5)}`;

/** A MAC address derived from a name, stable so that neighbours' caches stay valid. */
export const hardware = (name: string): string => `02:${(digest(name).slice(0, 10).match(/../g) ?? []).join(":")}`;

/** The host's address on every bridge: the machines' IPv4 gateway. */
export const GATEWAY4 = "169.254.77.1";
