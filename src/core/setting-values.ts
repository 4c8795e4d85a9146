/** Parses and validates values of settings. */
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { messageOf } from "./assert.ts";

/** An invalid setting. The message has its name, its source and the allowed values. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

/** A value and its source. */
export interface Given {
  value: string;
  from: string;
}

export function pemFile({ value, from }: Given): string {
  try {
    return readFileSync(value, "utf8");
  } catch (thrown) {
    throw new SettingsError(`${from}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** The absolute path of a program that this process may run. */
export function program({ value, from }: Given): string {
  const wrong = (problem: string): never => {
    throw new SettingsError(`${from}: "${value}" ${problem}`);
  };
  if (!isAbsolute(value)) return wrong("is not an absolute path of a program, such as /etc/hangar/dns-hook");
  if (!statSync(value, { throwIfNoEntry: false })?.isFile()) return wrong("is not a file");
  try {
    accessSync(value, constants.X_OK);
  } catch {
    return wrong("cannot be executed: chmod +x");
  }
  return value;
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

export function address({ value, from }: Given): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(value);
  const port = Number(match?.[3]);
  if (!match || port > 65535) throw new SettingsError(`${from}: "${value}" is not host:port`);
  return { host: match[1] ?? match[2] ?? "", port };
}

export function between(given: Given, name: string, low: number, high: number): number {
  const value = wholeNumber(given, name);
  if (value < low || value > high) throw new SettingsError(`${given.from}: ${name} is from ${low} to ${high}`);
  return value;
}

const HOST = /^(?:\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9]+(?:[.-]+[a-zA-Z0-9]+)*)(?::\d{1,5})?$/;

/** `host[:port]`, with commas between several. */
export function hostList({ value, from }: Given, such_as: string): string[] {
  const hosts = value.split(",").flatMap((one) => (one.trim() === "" ? [] : [one.trim()]));
  const wrong = hosts.find((one) => !HOST.test(one) || !URL.canParse(`https://${one}`));
  if (wrong !== undefined) throw new SettingsError(`${from}: "${wrong}" is not a host or host:port such as ${such_as}`);
  return hosts;
}
