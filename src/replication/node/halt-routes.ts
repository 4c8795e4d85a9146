/** The routes of writing from a replica: /halt, /tx and /unhalt on the primary, /lock and /unlock on the replica. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { fail } from "#core/errors.ts";
import { BODY_HEADER, headerOf, sha256 } from "../credentials/credentials.ts";
import { formatPosition } from "../position.ts";
import type { HaltLocks } from "./halt-locks.ts";
import { readBody } from "./peer.ts";
import type { RemoteWrites } from "./remote-writes.ts";

export interface HaltParts {
  halts: HaltLocks;
  remote_writes: RemoteWrites;
}

interface HaltCall extends HaltParts {
  request: IncomingMessage;
  response: ServerResponse;
  url: URL;
  body: Buffer;
}

type Handler = (call: HaltCall) => Promise<object> | object;

export const HALT_ROUTES: Record<string, Handler> = {
  /** With an id: renews. */
  async "/halt"({ halts, body }) {
    const { node, name, id } = texts(body);
    if (id !== undefined) {
      halts.renew(needed("name", name), id);
      return { ok: true };
    }
    const lock = await halts.acquire(needed("node", node), needed("name", name));
    return { id: lock.id, position: formatPosition(lock.position) };
  },
  "/unhalt"({ halts, body }) {
    const { name, id } = texts(body);
    halts.release(needed("name", name), needed("id", id));
    return { ok: true };
  },
  async "/tx"({ halts, request, url }) {
    const bytes = await readBody(request, "halt_bytes");
    const signed = headerOf(request.headers, BODY_HEADER);
    if (signed !== undefined && sha256(bytes) !== signed) {
      fail("unauthorized", "the body does not match its signed digest; nothing was changed");
    }
    const [name, id] = ["name", "id"].map((key) => needed(key, url.searchParams.get(key) ?? undefined));
    return { position: formatPosition(await halts.apply(name ?? "", id ?? "", bytes)) };
  },
  async "/lock"({ remote_writes, body }) {
    const { name, id } = texts(body);
    if (id === undefined) return await remote_writes.lock(needed("name", name));
    remote_writes.renew(needed("name", name), id);
    return { ok: true };
  },
  async "/unlock"({ remote_writes, body }) {
    const { name, id } = texts(body);
    return await remote_writes.unlock(needed("name", name), needed("id", id));
  },
};

/** Routes with large bodies, which they read themselves. */
export const LARGE_BODIES: ReadonlySet<string> = new Set(["/tx"]);

function texts(body: Buffer): Record<string, string | undefined> {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(Object.entries(value).filter(([, text]) => typeof text === "string"));
    }
  } catch {
    // Answered below.
  }
  return fail("malformed_json", "the body must be a JSON object");
}

function needed(key: string, value: string | undefined): string {
  return value || fail("invalid_request", `${key} is missing`, { details: [{ path: key, problem: "is missing" }] });
}
