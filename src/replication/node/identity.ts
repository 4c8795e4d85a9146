import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { readJson, writeJson } from "../durable.ts";

/** A node's persistent identity: its id, and the highest term it has seen. */
export interface Identity {
  /** 16 hex digits, generated once. */
  node: string;
  term: number;
  /** Whether it was the primary of that term. */
  was_primary: boolean;
  /** The highest term in which it had everything of its primary. */
  complete_term: number;
}

const fileIn = (dir: string): string => join(dir, ".replication", "node.json");

const idOf = ({ node = "" }: Partial<Identity>): string | undefined => (/^[0-9a-f]{16}$/.test(node) ? node : undefined);

/** The id of the node with this directory; undefined when there is none. */
export const nodeIdIn = (dir: string): string | undefined => idOf(readJson(fileIn(dir)) ?? {});

export class IdentityFile {
  readonly #path: string;
  #identity: Identity;

  constructor(dir: string) {
    this.#path = fileIn(dir);
    mkdirSync(dirname(this.#path), { recursive: true });
    const kept = readJson(this.#path) as Partial<Identity> | undefined;
    const node = idOf(kept ?? {});
    this.#identity = {
      node: node ?? randomBytes(8).toString("hex"),
      term: integerOf(kept?.term),
      was_primary: kept?.was_primary === true,
      complete_term: integerOf(kept?.complete_term),
    };
    if (!node) writeJson(this.#path, this.#identity);
  }

  get value(): Readonly<Identity> {
    return this.#identity;
  }

  /** Records that everything of this term was here. */
  complete(): void {
    if (this.#identity.complete_term === this.#identity.term) return;
    this.#identity = { ...this.#identity, complete_term: this.#identity.term };
    writeJson(this.#path, this.#identity);
  }

  /** Stored before any action in the new term, so that a lower one is refused even after a crash. */
  enter(term: number, was_primary: boolean): void {
    if (this.#identity.term === term && this.#identity.was_primary === was_primary) return;
    this.#identity = { ...this.#identity, term, was_primary };
    writeJson(this.#path, this.#identity);
  }
}

function integerOf(value: number | undefined): number {
  return Number.isSafeInteger(value) ? (value ?? 0) : 0;
}
