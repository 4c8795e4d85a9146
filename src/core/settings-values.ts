/** Values of settings: how each kind is written, and what is said when it is not. */
import { readFileSync } from "node:fs";
import { messageOf } from "./assert.ts";

/** A setting that cannot be used. The text says which, where it came from and what is allowed. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

export interface Given {
  value: string;
  from: string;
}

export function address({ value, from }: Given): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(value);
  const port = Number(match?.[3]);
  if (!match || port > 65535) throw new SettingsError(`${from}: "${value}" is not host:port`);
  return { host: match[1] ?? match[2] ?? "", port };
}

export function origin({ value, from }: Given): string {
  if (value === "") return "";
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== "/") {
    throw new SettingsError(`${from}: "${value}" is not an origin such as https://machines.example`);
  }
  return url.origin;
}

/** Tokens name it letter for letter, so it is kept as it is written. */
export function issuer({ value, from }: Given): string {
  if (value === "") return "";
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || value.endsWith("/"))
    throw new SettingsError(`${from}: "${value}" is not an address such as https://machines.example/oidc`);
  return value;
}

export function between(given: Given, name: string, low: number, high: number): number {
  const value = wholeNumber(given, name);
  if (value < low || value > high) throw new SettingsError(`${given.from}: ${name} is from ${low} to ${high}`);
  return value;
}

export function objectsUrl({ value, from }: Given): URL | undefined {
  if (value === "") return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const place = url && (/^https?:$/.test(url.protocol) ? url.pathname.length > 1 : url.protocol === "file:");
  if (!url || !place || url.username !== "" || url.search !== "") {
    throw new SettingsError(`${from}: "${value}" is not a place such as https://s3.example/bucket or file:///backups`);
  }
  return url;
}

export function databaseUrl({ value, from }: Given): string {
  if (!/^postgres(ql)?:\/\//.test(value)) throw new SettingsError(`${from}: only postgres://… is a database address`);
  return value;
}

export function masterKey({ value, from }: Given): Buffer {
  const key = Buffer.from(value, "base64");
  if (key.length !== 32) throw new SettingsError(`${from}: a master key is the base64 of 32 bytes`);
  return key;
}

export function pemFile({ value, from }: Given): string {
  try {
    return readFileSync(value, "utf8");
  } catch (thrown) {
    throw new SettingsError(`${from}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

export function oneOf<const T extends string>({ value, from }: Given, name: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (!found) throw new SettingsError(`${from}: ${name} is one of ${allowed.join(", ")}, not "${value}"`);
  return found;
}

export function wholeNumber({ value, from }: Given, name: string): number {
  if (!/^\d{1,9}$/.test(value)) throw new SettingsError(`${from}: ${name} is a whole number, not "${value}"`);
  return Number(value);
}
