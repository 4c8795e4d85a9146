/** Parses the base images and platforms of a Dockerfile before the build. */
import { readFileSync, statSync } from "node:fs";
import { fail } from "#core/errors.ts";
import { readInstructions } from "./instructions.ts";
import type { BuildLimits } from "./limits.ts";

const ARCHITECTURES: Record<string, string> = { x64: "amd64", arm64: "arm64" };
export const HOST_PLATFORM = `linux/${ARCHITECTURES[process.arch] ?? process.arch}`;

/** Longer ones name no image. */
const NAME_CHARS = 1024;

/** Reads a Dockerfile of a context; it may be any file, so it is measured first. */
export function readDockerfile(file: string, { dockerfile_bytes }: BuildLimits): string {
  const { size } = statSync(file);
  if (size > dockerfile_bytes)
    fail(
      "build_refused",
      `the Dockerfile has ${size} bytes; at most ${dockerfile_bytes} are read (limit dockerfile_bytes)`,
    );
  return readFileSync(file, "utf8");
}

/** Resolves names of images, stages and variables; stages of the same file are omitted. */
export function baseImages(
  text: string,
  args: Readonly<Record<string, string>>,
  { base_images }: BuildLimits,
): string[] {
  const reader = new BaseReader(args);
  for (const { word, rest } of readInstructions(text)) {
    READERS[word]?.(reader, rest);
    if (reader.found.size > base_images)
      fail("build_refused", `the Dockerfile names more than ${base_images} images (limit base_images)`);
  }
  return [...reader.found];
}

/** A variable with its default, or what is before the next one. No part is tried twice from the same place. */
const PIECE = /\$\{(\w+)(?::?-([^}$]*))?\}|\$(\w+)|\$|[^$]+/g;

class BaseReader {
  readonly found = new Set<string>();
  readonly stages = new Set<string>(["scratch"]);
  readonly #variables: Record<string, string> = {};
  readonly #args: Readonly<Record<string, string>>;

  constructor(args: Readonly<Record<string, string>>) {
    this.#args = args;
  }

  set(name: string, fallback: string): void {
    this.#variables[name] = this.#args[name] ?? (this.expand(fallback) || this.#variables[name]) ?? "";
  }

  /** Only as much as a name may have: variables that are made of each other grow without end. */
  expand(word: string): string {
    let expanded = "";
    for (const [piece, braced, fallback, bare] of word.matchAll(PIECE)) {
      const variable = braced ?? bare;
      expanded += variable === undefined ? piece : this.#variables[variable] || (fallback ?? "");
      if (expanded.length > NAME_CHARS) return expanded.slice(0, NAME_CHARS + 1);
    }
    return expanded;
  }

  add(word: string): void {
    const name = this.expand(word);
    if (name.length > NAME_CHARS)
      fail("build_refused", `the Dockerfile names an image with more than ${NAME_CHARS} characters`);
    if (name !== "" && !this.stages.has(name.toLowerCase()) && !/^\d+$/.test(name)) this.found.add(name);
  }
}

function readCopied(reader: BaseReader, rest: string): void {
  for (const [, name = ""] of rest.matchAll(/(?:^|\s)--(?:from|mount=\S*?from)=([^\s,]+)/g)) reader.add(name);
}

/** Instructions that affect base images. */
const READERS: Record<string, (reader: BaseReader, rest: string) => void> = {
  ARG(reader, rest) {
    const [, name = "", fallback = ""] = /^(\w+)(?:=["']?([^"'\s]*))?/.exec(rest) ?? [];
    reader.set(name, fallback);
  },
  FROM(reader, rest) {
    const words = rest.split(/\s+/).filter(Boolean);
    for (const flag of words.filter((one) => one.startsWith("--platform=")))
      checkPlatform(reader.expand(flag.slice("--platform=".length)));
    const [image = "", as, name] = words.filter((one) => !one.startsWith("--"));
    reader.add(image);
    if (as?.toLowerCase() === "as" && name) reader.stages.add(name.toLowerCase());
  },
  COPY: readCopied,
  ADD: readCopied,
  RUN: readCopied,
};

/** Images are built for this host's platform. */
export function checkPlatform(platform: string): void {
  // Empty for a variable that only the builder knows, such as BUILDPLATFORM.
  if (platform === "" || platform === HOST_PLATFORM || platform.startsWith(`${HOST_PLATFORM}/`)) return;
  fail("build_refused", `the platform ${platform} cannot be built here; this host builds for ${HOST_PLATFORM}`, {
    hint: "build it where that platform runs, and push it: hangar registry login, then docker push",
  });
}
