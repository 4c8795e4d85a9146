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

  /** `begun` is given what ends the fetch early, with the reason. */
  async fetch(
    address: Address,
    path: string,
    https: boolean,
    allowance: Allowance,
    begun: (end: (reason: Error) => void) => void,
  ): Promise<Fetched> {
    const { answer, body } = await this.#ask(address, path, https, allowance, begun);
    const packed = answer.headers["content-encoding"] === "gzip";
    const type = answer.headers["content-type"] ?? "";
    return {
      bytes: packed ? await unpacked(body, allowance) : body,
      format: type.startsWith("application/openmetrics-text") ? "openmetrics" : "prometheus",
    };
  }

  close(): void {
    this.#agent.destroy();
    this.#tlsAgent.destroy();
  }

  // Events and not streams and signals: a thousand targets are asked all the time, and those cost twice as much.
  #ask(
    { host, port }: Address,
    path: string,
    https: boolean,
    allowance: Allowance,
    begun: (end: (reason: Error) => void) => void,
  ): Promise<{ answer: IncomingMessage; body: Buffer }> {
    const options = { host, port, path: path.startsWith("/") ? path : `/${path}`, headers: HEADERS };
    return new Promise((resolve, reject) => {
      const asked = https
        ? tlsRequest({ ...options, agent: this.#tlsAgent })
        : request({ ...options, agent: this.#agent });
      const end = (reason: Error): void => {
        reject(reason);
        asked.destroy();
      };
      asked.on("error", reject);
      asked.on("response", (answer: IncomingMessage) => {
        receive(answer, allowance, end, (body) => resolve({ answer, body }));
      });
      begun(end);
      asked.end();
    });
  }
}

/** Gathers the body, as far as it may go; `end` is called at the first thing that is wrong. */
function receive(
  answer: IncomingMessage,
  allowance: Allowance,
  end: (reason: Error) => void,
  whole: (body: Buffer) => void,
): void {
  const wrong = refusalOf(answer);
  if (wrong) {
    end(wrong);
    return;
  }
  const parts: Buffer[] = [];
  let length = 0;
  answer.on("data", (part: Buffer) => {
    length += part.length;
    if (length > SCRAPE_LIMITS.body_bytes) end(tooLarge());
    else if (!allowance.take(part.length)) end(noRoom());
    else parts.push(part);
  });
  answer.on("aborted", () => end(new ScrapeFailure("its answer was aborted halfway")));
  answer.on("error", end);
  answer.on("end", () => whole(joined(parts, length)));
}

/** A buffer of its own, which is handed to the engine and not copied. */
function joined(parts: readonly Buffer[], length: number): Buffer {
  const body = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

/** What is wrong with an answer before any of its body is read. */
function refusalOf({ statusCode = 0, headers }: IncomingMessage): ScrapeFailure | undefined {
  if (statusCode >= 300 && statusCode < 400) {
    return new ScrapeFailure(`it answered ${statusCode}, and a redirect is not followed`);
  }
  if (statusCode !== 200) return new ScrapeFailure(`it answered ${statusCode}`);
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity" && encoding !== "gzip") {
    const said = encoding.slice(0, 40);
    return new ScrapeFailure(`it answered with content-encoding ${said}; gzip or none is understood`);
  }
  // Its own word is enough to refuse it, and not enough to believe it.
  return Number(headers["content-length"]) > SCRAPE_LIMITS.body_bytes ? tooLarge() : undefined;
}

async function unpacked(body: Buffer, allowance: Allowance): Promise<Buffer> {
  try {
    const bytes = await unpack(body, { maxOutputLength: SCRAPE_LIMITS.body_bytes });
    if (allowance.take(bytes.length)) return bytes;
  } catch (thrown) {
    throw thrown instanceof RangeError ? tooLarge() : new ScrapeFailure("its answer cannot be unpacked");
  }
  throw noRoom();
}

const noRoom = (): ScrapeFailure =>
  new ScrapeFailure("too much is being received from the organization's targets at once (bytes_in_flight)");

function tooLarge(): ScrapeFailure {
  const most = SCRAPE_LIMITS.body_bytes / 2 ** 20;
  return new ScrapeFailure(`its answer is larger than ${most} MB (body_bytes) and was dropped`, true);
}
