import type { MachineState } from "#machines/lifecycle/states.ts";
import type { Sprite, SpriteView } from "./types.ts";

/** The app that the machines of an organization's sprites are in. */
export interface SpriteApp {
  org_id: string;
  app_id: string;
  app_name: string;
}

export interface SpritePage {
  /** Only names that begin so. */
  prefix: string;
  /** Starts after this name. */
  after: string;
  limit: number;
}

export type SpriteInserted = "inserted" | "exists" | "name_taken" | "limit" | "no_app";

/** Stores sprites; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface SpriteStore {
  app(org_id: string): Promise<SpriteApp | undefined>;
  /** Records which app has an organization's sprites, unless one is recorded that still exists. */
  putApp(org_id: string, app_id: string): Promise<void>;
  /** Records what is about to be made. `exists`: this id is stored, by an earlier run of the same request. */
  insert(sprite: Sprite, limit: number): Promise<SpriteInserted>;
  find(org_id: string, name: string): Promise<SpriteView | undefined>;
  findByMachine(org_id: string, machine_id: string): Promise<SpriteView | undefined>;
  /** Organizations that have an app of sprites. */
  orgs(): Promise<{ id: string; slug: string }[]>;
  count(org_id: string): Promise<number>;
  /** Ordered by name. */
  list(org_id: string, page: SpritePage): Promise<SpriteView[]>;
  /** How many of an organization's machines of sprites are in each state. */
  states(org_id: string): Promise<{ state: MachineState | null; sprites: number }[]>;
  /** False when it is not there, or being deleted. */
  change(id: string, change: Partial<Pick<Sprite, "url_auth" | "private_access">>, now: number): Promise<boolean>;
  /** Its machine is stored. False when it is not being created. */
  putReady(id: string): Promise<boolean>;
  /** False when it does not exist. */
  putDeleting(id: string): Promise<boolean>;
  /** Only when it is being deleted. */
  remove(id: string): Promise<void>;
  /** Sprites that are being created or deleted since before a time, and those whose machine was destroyed. */
  unfinished(before: number, limit: number): Promise<SpriteView[]>;
  /** Sprites of all organizations whose machines are in this state. */
  inState(state: MachineState, page: { after: string; limit: number }): Promise<SpriteView[]>;
}
