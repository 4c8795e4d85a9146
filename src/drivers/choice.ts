import { SettingsError } from "#core/settings.ts";

export interface DriverChoice {
  name: "sim";
  /** Why this one, for the person who started the platform. */
  reason: string;
}

/** Which driver runs machines on this box. */
export function chooseDriver(setting: "auto" | "runc" | "sim"): DriverChoice {
  if (setting === "runc") {
    throw new SettingsError("driver: runc is not part of this version; use sim, or auto to get runc once it is");
  }
  const reason = setting === "sim" ? "as set" : "this version has no other driver; nothing real runs in it";
  return { name: "sim", reason };
}
