import { Agent, type IncomingMessage, request } from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { Allowance } from "./budget.ts";
import { SCRAPE_LIMITS } from "./limits.ts";

/** Where a machine's port is reached from here. */
export interface Address {
  host: string;
  port: number;
}

export interface Fetched {
  bytes: Uint8Array;
  format: "prometheus" | "openmetrics";
}

/** Why a target gave nothing that can be used, in words for its owner. */
export class ScrapeFailure extends Error {
  override readonly name = "ScrapeFailure";
  /** The answer was larger than a target may send. */
  readonly too_large: boolean;

  constructor(message: string, too_large = false) {
    super(message);
    this.too_large = too_large;
  }
}

const HEADERS = {
  accept: "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
  "accept-encoding": "gzip",
  "user-agent": "hangar",
  "x-prometheus-scrape-timeout-seconds": String(SCRAPE_LIMITS.timeout_ms / 1000),
};

const unpack = promisify(gunzip);

/**
 * Asks targets over connections that are kept from one time to the next. What a target sends is never trusted: not its
 * length, not its packing, not where it points.
 */
export class Fetcher {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: 60_000 });
  // A machine's certificate is its own affair: who answers on its private address is that machine.
  readonly #tlsAgent = new TlsAgent({ keepAlive: true, maxSockets: 1, timeout: 60_000, rejectUnauthorized: false });

  async fetch(
    address: Address,
    path: string,
    https: boolean,
    allowance: Allowance,
    signal: AbortSignal,
  ): Promise<Fetched> {
    const answer = await this.#ask(address, path, https, signal);
    try {
      const body = await bodyOf(answer, allowance);
      const packed = answer.headers["content-encoding"] === "gzip";
      const type = answer.headers["content-type"] ?? "";
      return {
        bytes: packed ? await unpacked(body, allowance) : body,
        format: type.startsWith("application/openmetrics-text") ? "openmetrics" : "prometheus",
      };
    } finally {
      // Whatever was not read is not waited for.
      if (!answer.complete) answer.destroy();
    }
  }

  close(): void {
    this.#agent.destroy();
    this.#tlsAgent.destroy();
  }

  #ask({ host, port }: Address, path: string, https: boolean, signal: AbortSignal): Promise<IncomingMessage> {
    const options = { host, port, path: path.startsWith("/") ? path : `/${path}`, headers: HEADERS, signal };
    return new Promise((resolve, reject) => {
      const asked = https
        ? tlsRequest({ ...options, agent: this.#tlsAgent }, resolve)
        : request({ ...options, agent: this.#agent }, resolve);
      asked.once("error", reject);
      asked.end();
    });
  }
}

async function bodyOf(answer: IncomingMessage, allowance: Allowance): Promise<Buffer> {
  const { statusCode = 0, headers } = answer;
  if (statusCode >= 300 && statusCode < 400) {
    throw new ScrapeFailure(`it answered ${statusCode}, and a redirect is not followed`);
  }
  if (statusCode !== 200) throw new ScrapeFailure(`it answered ${statusCode}`);
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity" && encoding !== "gzip") {
    throw new ScrapeFailure(`it answered with content-encoding ${encoding.slice(0, 40)}; gzip or none is understood`);
  }
  // Its own word is enough to refuse it, and not enough to believe it.
  if (Number(headers["content-length"]) > SCRAPE_LIMITS.body_bytes) tooLarge();
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > SCRAPE_LIMITS.body_bytes) tooLarge();
    take(allowance, part.length);
    parts.push(part);
  }
  // A buffer of its own is handed to the engine and not copied.
  const body = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

async function unpacked(body: Buffer, allowance: Allowance): Promise<Buffer> {
  try {
    const bytes = await unpack(body, { maxOutputLength: SCRAPE_LIMITS.body_bytes });
    take(allowance, bytes.length);
    return bytes;
  } catch (thrown) {
    if (thrown instanceof ScrapeFailure) throw thrown;
    if (thrown instanceof RangeError) tooLarge();
    throw new ScrapeFailure("its answer cannot be unpacked");
  }
}

function take(allowance: Allowance, bytes: number): void {
  if (!allowance.take(bytes)) {
    throw new ScrapeFailure("too much is being received from the organization's targets at once (bytes_in_flight)");
  }
}

function tooLarge(): never {
  const most = SCRAPE_LIMITS.body_bytes / 2 ** 20;
  throw new ScrapeFailure(`its answer is larger than ${most} MB (body_bytes) and was dropped`, true);
}
