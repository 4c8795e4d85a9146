import { Duplex } from "node:stream";
import { fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { Caller } from "./access.ts";

/**
 * Open connections, streams and large bodies per token. Attenuated tokens count with their origin. The operator is not
 * counted, so that the platform stays reachable under load.
 */
export class TokenUsage {
  readonly #connections = new Map<string, Set<Duplex>>();
  readonly #tokens = new WeakMap<Duplex, string>();
  readonly #streams = new Map<string, number>();
  readonly #bodies = new Map<string, number>();
  #bodies_bytes = 0;

  /** A connection belongs to the token that used it last. Fails with `rate_limited` past the limit. */
  connect(caller: Caller, connection: unknown): void {
    // An injected request has no socket.
    if (!isCounted(caller) || !(connection instanceof Duplex) || connection.destroyed) return;
    const { token_id } = caller;
    const before = this.#tokens.get(connection);
    if (before === token_id) return;
    const own = this.#connections.get(token_id) ?? new Set();
    if (own.size >= LIMITS.connections_per_token) refuse("connections", "connections_per_token");
    if (before === undefined) connection.once("close", () => this.#disconnect(connection));
    else this.#disconnect(connection);
    this.#connections.set(token_id, own.add(connection));
    this.#tokens.set(connection, token_id);
  }

  /** Counts a stream, followed log or terminal. Fails as above; the returned function ends it. */
  stream(caller: Caller): () => void {
    if (!isCounted(caller)) return () => {};
    const { token_id } = caller;
    const open = this.#streams.get(token_id) ?? 0;
    if (open >= LIMITS.streams_per_token) refuse("streams", "streams_per_token");
    this.#streams.set(token_id, open + 1);
    return () => {
      const left = (this.#streams.get(token_id) ?? 1) - 1;
      if (left > 0) this.#streams.set(token_id, left);
      else this.#streams.delete(token_id);
    };
  }

  /** Counts a body before it is read. Fails past the limit; the returned function ends it. */
  body(caller: Caller, bytes: number): () => void {
    if (caller.is_operator) return () => {};
    const { token_id } = caller;
    const own = (this.#bodies.get(token_id) ?? 0) + bytes;
    if (own > LIMITS.bodies_bytes_per_token) refuse("bytes of bodies", "bodies_bytes_per_token");
    if (this.#bodies_bytes + bytes > LIMITS.bodies_bytes)
      fail("overloaded", "too many large bodies are being read (limit bodies_bytes)", { retry_after_s: 1 });
    this.#bodies.set(token_id, own);
    this.#bodies_bytes += bytes;
    return () => {
      this.#bodies_bytes -= bytes;
      const left = (this.#bodies.get(token_id) ?? bytes) - bytes;
      if (left > 0) this.#bodies.set(token_id, left);
      else this.#bodies.delete(token_id);
    };
  }

  #disconnect(connection: Duplex): void {
    const token_id = this.#tokens.get(connection) ?? "";
    const own = this.#connections.get(token_id);
    own?.delete(connection);
    if (own?.size === 0) this.#connections.delete(token_id);
    this.#tokens.delete(connection);
  }
}

const isCounted = ({ token_id, is_operator }: Caller): boolean => token_id !== "" && !is_operator;

function refuse(what: string, limit: "connections_per_token" | "streams_per_token" | "bodies_bytes_per_token"): never {
  fail("rate_limited", `this token has ${LIMITS[limit]} ${what} open already (limit ${limit})`, {
    retry_after_s: 1,
    hint: "close some of them, or use a separate token for each program",
    headers: { connection: "close" },
  });
}
