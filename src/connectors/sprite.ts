import { assert } from "#core/assert.ts";
import { labelsOf as parseLabels, SPRITE_LABELS_KEY } from "#core/sprite-labels.ts";
import type { Caller } from "#http/access.ts";
import type { Sprite } from "./types.ts";

/** A calling machine. Only the identity module creates one, after authentication. */
export class SpriteCaller implements Caller {
  readonly token_id: string;
  readonly name: string;
  readonly sprite: Sprite;

  constructor(sprite: Sprite) {
    this.token_id = `machine:${sprite.machine_id}`;
    this.name = `machine ${sprite.name}`;
    this.sprite = sprite;
  }
}

export function spriteOf(caller: Caller): Sprite {
  assert(caller instanceof SpriteCaller, "routes for machines have a machine");
  return caller.sprite;
}

/** The labels in a machine's metadata: `sprite_labels: "prod, web"`. */
export function labelsOf(metadata: Record<string, string> | undefined): string[] {
  return parseLabels(metadata?.[SPRITE_LABELS_KEY] ?? "");
}

/** Finds machines for policy previews. Implemented by the identity module. */
export interface SpriteFinder {
  /** Labels of an organization's machine by name; none when it does not exist. */
  labels(org_id: string, name: string): Promise<string[]>;
}
