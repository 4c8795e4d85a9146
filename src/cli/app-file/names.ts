/** Where an app's configuration is looked for in a folder; the first that is there. */
export const APP_FILES = ["hangar.toml", "fly.toml"] as const;
