/** The host names of sprites, and their URLs. */
import { createHash } from "node:crypto";
import type { Sprite } from "../types.ts";

const LABEL_CHARS = 63;
const TAG_CHARS = 10;
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** Fifty bits of an organization's id, in letters and digits of a host name. */
export function orgTag(org_id: string): string {
  const bytes = createHash("sha256").update(`sprite url ${org_id}`).digest();
  return Array.from({ length: TAG_CHARS }, (_, at) => BASE32[(bytes[at] ?? 0) & 31]).join("");
}

type Named = Pick<Sprite, "name" | "org_id" | "machine_id">;

/** A name that is too long for a label with the organization gives way to the sprite's machine. */
function labelOf({ name, org_id, machine_id }: Named): string {
  const tag = orgTag(org_id);
  return `${name.length + 1 + tag.length <= LABEL_CHARS ? name : machine_id}-${tag}`;
}

/** The two parts of a label: a sprite's name or its machine, and the organization's tag. */
export function readLabel(label: string): { name: string; tag: string } | undefined {
  const dash = label.length - TAG_CHARS - 1;
  return dash > 0 && label[dash] === "-" ? { name: label.slice(0, dash), tag: label.slice(dash + 1) } : undefined;
}

/** Below which domain, on which port, and with which scheme the URLs of sprites are. */
export interface UrlPlace {
  zone: string;
  port: number;
  tls: boolean;
}

const HTTP = 80;
const HTTPS = 443;

/** Names below `localhost` lead to this box alone, and no authority signs a certificate for them. */
export function urlPlace(domain: string, port: number): UrlPlace {
  const tls = domain !== "localhost" && !domain.endsWith(".localhost");
  return { zone: `sprites.${domain}`, port: port || (tls ? HTTPS : HTTP), tls };
}

export function urlOf(sprite: Named, { zone, port, tls }: UrlPlace): string {
  const usual = port === (tls ? HTTPS : HTTP);
  return `${tls ? "https" : "http"}://${labelOf(sprite)}.${zone}${usual ? "" : `:${port}`}`;
}

/** The ports to open: with the usual one of TLS that without, which leads to it. */
export const portsOf = ({ port, tls }: UrlPlace): { port: number; tls: boolean }[] => [
  { port, tls },
  ...(tls && port === HTTPS ? [{ port: HTTP, tls: false }] : []),
];
