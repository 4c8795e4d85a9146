/** Parses the base images and platforms of a Dockerfile before the build. */
import { readFileSync, statSync } from "node:fs";
import { fail } from "#core/errors.ts";
import { readInstructions } from "./instructions.ts";
import type { BuildLimits } from "./limits.ts";
import type { BuildOptions } from "./types.ts";

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

/**
 * Resolves names of images, stages and variables: the images that the target, or the last stage, is made of. Stages that it does
 * not need are not built.
 */
export function baseImages(
  text: string,
  { args, target }: Pick<BuildOptions, "args" | "target">,
  { base_images }: BuildLimits,
): string[] {
  const reader = new StageReader(args);
  for (const { word, rest } of readInstructions(text)) READERS[word]?.(reader, rest);
  const images = new Set<string>();
  for (const stage of reader.neededFor(target)) {
    for (const platform of stage.platforms) checkPlatform(platform);
    for (const image of stage.images) images.add(image);
    if (images.size > base_images)
      fail("build_refused", `the Dockerfile names more than ${base_images} images (limit base_images)`);
  }
  return [...images];
}

interface Stage {
  platforms: string[];
  images: Set<string>;
  /** Earlier ones that it begins with or copies from. */
  stages: Set<Stage>;
}

/** A variable with its default, or what is before the next one. No part is tried twice from the same place. */
const PIECE = /\$\{(\w+)(?::?-([^}$]*))?\}|\$(\w+)|\$|[^$]+/g;

class StageReader {
  readonly #stages: Stage[] = [];
  readonly #named = new Map<string, Stage>();
  readonly #variables: Record<string, string> = {};
  readonly #args: Readonly<Record<string, string>>;

  constructor(args: Readonly<Record<string, string>>) {
    this.#args = args;
  }

  /** All of them when there is no such stage, which the builder reports. */
  neededFor(target: string | undefined): Iterable<Stage> {
    const last = target === undefined ? this.#stages.at(-1) : this.#find(target);
    if (!last) return this.#stages;
    const needed = new Set([last]);
    for (const stage of needed) for (const other of stage.stages) needed.add(other);
    return this.#stages.filter((stage) => needed.has(stage));
  }

  begin(image: string, name: string | undefined, platforms: string[]): void {
    const stage: Stage = { platforms, images: new Set(), stages: new Set() };
    this.#stages.push(stage);
    this.add(image);
    // Only now: in its own FROM, the name is that of an image.
    if (name) this.#named.set(name.toLowerCase(), stage);
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

  /** An image or stage that the newest stage needs. */
  add(word: string): void {
    const name = this.expand(word);
    if (name.length > NAME_CHARS)
      fail("build_refused", `the Dockerfile names an image with more than ${NAME_CHARS} characters`);
    const stage = this.#stages.at(-1);
    if (!stage || name === "" || name.toLowerCase() === "scratch") return;
    const other = this.#find(name);
    if (other) stage.stages.add(other);
    else if (!NUMBER.test(name)) stage.images.add(name);
  }

  /** By its name or its number. */
  #find(name: string): Stage | undefined {
    return this.#named.get(name.toLowerCase()) ?? (NUMBER.test(name) ? this.#stages[Number(name)] : undefined);
  }
}

const NUMBER = /^\d+$/;

function readCopied(reader: StageReader, rest: string): void {
  for (const [, name = ""] of rest.matchAll(/(?:^|\s)--(?:from|mount=\S*?from)=([^\s,]+)/g)) reader.add(name);
}

/** Instructions that affect base images. */
const READERS: Record<string, (reader: StageReader, rest: string) => void> = {
  ARG(reader, rest) {
    const [, name = "", fallback = ""] = /^(\w+)(?:=["']?([^"'\s]*))?/.exec(rest) ?? [];
    reader.set(name, fallback);
  },
  FROM(reader, rest) {
    const words = rest.split(/\s+/).filter(Boolean);
    const platforms = words.filter((one) => one.startsWith("--platform="));
    const [image = "", as, name] = words.filter((one) => !one.startsWith("--"));
    reader.begin(
      image,
      as?.toLowerCase() === "as" ? name : undefined,
      platforms.map((flag) => reader.expand(flag.slice("--platform=".length))),
    );
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
