/** Names of the app file in a folder; the first that exists is used. */
export const APP_FILES = ["hangar.toml", "fly.toml"] as const;
