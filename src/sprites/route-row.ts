/** What routes about a sprite have in common. */

export const SPRITE_ROW = { part: "sprites", style: "sprites", access: "control org" } as const;

/** Of routes that wake the sprite and do something in it. */
export const WAKE_ERRORS = [
  "wrong_state",
  "limit_reached",
  "overloaded",
  "wait_timeout",
  "insufficient_capacity",
  "host_unreachable",
  "lease_held",
] as const;
