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
  sprite_url_port: {
    default: "0",
    words:
      "Port of the URLs of sprites, `<sprite>-<organization>.sprites.<domain>`; 0: 443 with TLS, or 80 when the domain is " +
      "`localhost`.",
  },
} as const;
