/** Chooses the host of an organization's builds, which has the files of its contexts and its layer cache. */
import { createHash } from "node:crypto";
import type { App } from "#apps/types.ts";
import type { Build, ContextOwner, NewBuild } from "./types.ts";

/** This process, or another one of the platform. */
export interface BuildSite {
  /** The files that are missing there. */
  missing(owner: ContextOwner, digests: readonly string[]): Promise<string[]>;
  receive(owner: ContextOwner, upload: AsyncIterable<Uint8Array>): Promise<{ files: number; bytes: number }>;
  create(app: App, created_by: string, wanted: NewBuild, id: string): Promise<Build>;
}

/** A host that may build. */
export interface BuildHost {
  id: string;
  state: string;
  cordoned: boolean;
  address: string;
  facts: { builds?: string };
}

/** The attribute of a host that can build images. */
export const BUILDS = "yes";

/**
 * Chooses the host that builds for an organization, by rendezvous hashing: all processes choose the same one, and
 * adding or removing a host changes it for a few organizations only. Undefined when none can build.
 */
export function buildHost<Host extends BuildHost>(org_id: string, hosts: readonly Host[]): Host | undefined {
  const able = hosts.filter(({ state, facts, address }) => state === "ok" && facts.builds === BUILDS && address !== "");
  const open = able.filter(({ cordoned }) => !cordoned);
  const weight = ({ id }: Host): string => createHash("sha256").update(`${org_id} ${id}`).digest("hex");
  return (open.length > 0 ? open : able).sort((a, b) => (weight(a) < weight(b) ? -1 : 1))[0];
}
