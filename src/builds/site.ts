/** Where builds of an organization run: the files of its contexts and its layer cache are there. */
import { createHash } from "node:crypto";
import type { App } from "#apps/types.ts";
import type { Build, ContextOwner, NewBuild } from "./types.ts";

/** This process, or another one of the platform. */
export interface BuildSite {
  /** Those of the files that are not there. */
  missing(owner: ContextOwner, digests: readonly string[]): Promise<string[]>;
  receive(owner: ContextOwner, upload: AsyncIterable<Uint8Array>): Promise<{ files: number; bytes: number }>;
  create(app: App, created_by: string, wanted: NewBuild, id: string): Promise<Build>;
}

/** What there is to know of a host that may build. */
export interface BuildHost {
  id: string;
  state: string;
  cordoned: boolean;
  address: string;
  facts: { builds?: string };
}

/** What a host says of itself when it can build images. */
export const BUILDS = "yes";

/**
 * The host that builds for an organization, by rendezvous hashing: all processes choose the same one, and a host that
 * comes or goes changes it for a few organizations alone. Undefined when none can.
 */
export function buildHost<Host extends BuildHost>(org_id: string, hosts: readonly Host[]): Host | undefined {
  const able = hosts.filter(({ state, facts, address }) => state === "ok" && facts.builds === BUILDS && address !== "");
  const open = able.filter(({ cordoned }) => !cordoned);
  const weight = ({ id }: Host): string => createHash("sha256").update(`${org_id} ${id}`).digest("hex");
  return (open.length > 0 ? open : able).sort((a, b) => (weight(a) < weight(b) ? -1 : 1))[0];
}
