/** Settings of the listener for Fly's clients. */
import { address, type Given } from "./setting-values.ts";

export const FLY_SETTINGS = {
  fly_listen: {
    default: "",
    words:
      "Listen address for Fly's clients (flyctl, fly-go and others), such as `127.0.0.1:4281`; default: none. docs/fly.md",
  },
} as const satisfies Record<string, { default: string; words: string }>;

export interface FlySetting {
  /** Undefined: there is no such listener. */
  listen: { host: string; port: number } | undefined;
}

export function flySettings(given: (name: keyof typeof FLY_SETTINGS) => Given): FlySetting {
  const listen = given("fly_listen");
  return { listen: listen.value === "" ? undefined : address(listen) };
}
