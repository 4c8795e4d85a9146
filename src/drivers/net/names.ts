/** What this installation's network devices are called. */
import { createHash } from "node:crypto";

export const digest = (text: string): string => createHash("sha256").update(text).digest("hex");

/**
 * A network device's name has fifteen characters: `h`, five of this installation, what it is, eight of whose it is. So
 * everything of an installation can be found by how its name begins.
 */
export const deviceName = (node_id: string, kind: "b" | "v" | "t", whose: string): string =>
  `${devicePrefix(node_id)}${kind}${digest(whose).slice(0, 8)}`;
export const devicePrefix = (node_id: string): string => `h${node_id.slice(0, 5)}`;

/** An address of the hardware, made from a name: the same after every start, or neighbours would remember the wrong one. */
export const hardware = (name: string): string => `02:${(digest(name).slice(0, 10).match(/../g) ?? []).join(":")}`;

/** The host's address on every bridge, where machines send what goes out over IPv4. */
export const GATEWAY4 = "169.254.77.1";
