/** Settings of sprites. */
export const SPRITE_SETTINGS = {
  sprites_base_url: {
    default: "",
    words: "Public origin of connectors and the gateway; default: the base URL.",
  },
  sprite_image: {
    default: "hangar/sprite:latest",
    words: "The image of sprites that name none; `hangar images base sprite` makes the default one.",
  },
} as const;
