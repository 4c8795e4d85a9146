import type { Socket } from "node:net";
import { connect as tlsConnect } from "node:tls";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { type Address, dial, Endpoint } from "#core/dial.ts";
import type { Allowance } from "./budget.ts";
import { noRoom, ScrapeFailure, tooLarge } from "./failure.ts";
import { SCRAPE_LIMITS } from "./limits.ts";
import { ResponseReader } from "./response.ts";

export interface Fetched {
  /** Good until `release`. */
  bytes: Uint8Array;
  format: "prometheus" | "openmetrics" | "protobuf";
  release(): void;
}

const TEXT = "application/openmetrics-text;version=1.0.0";
const OTHERS = "text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
/** Only this format has native histograms. */
const PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

const HEADERS = Object.entries({
  "accept-encoding": "gzip",
  "user-agent": "hangar",
  "x-prometheus-scrape-timeout-seconds": String(SCRAPE_LIMITS.timeout_ms / 1000),
});

const unpack = promisify(gunzip);

/** Read buffer of all connections: its bytes are copied out before the next read. */
const received = Buffer.allocUnsafeSlow(64 * 1024);

/** How a machine wants to be scraped. */
export interface ScrapeSettings {
  path: string;
  https?: boolean;
  /** Asks for the format that has native histograms, before text. */
  native_histograms?: boolean;
}

interface PendingScrape {
  reader: ResponseReader;
  allowance: Allowance;
  /** It may be retried: no byte of a response came on a reused connection, so the target may just have closed it. */
  again: boolean;
  resolve(reader: ResponseReader): void;
  reject(reason: Error): void;
}

/**
 * The keep-alive connection to one target. Nothing that a target sends is trusted: not its length, not its compression,
 * not its redirects.
 */
export class KeepAliveConnection {
  readonly #endpoint: Endpoint;
  readonly #tls: boolean;
  readonly #request: string;
  #socket: Socket | undefined;
  /** Ends the attempt to connect, while there is one. */
  #giveUp: (() => void) | undefined;
  #pending: PendingScrape | undefined;

  constructor(address: Address, { path, https = false, native_histograms = false }: ScrapeSettings) {
    this.#endpoint = new Endpoint(address);
    this.#tls = https;
    const accept = native_histograms ? `${PROTOBUF},${TEXT};q=0.8,${OTHERS}` : `${TEXT},${OTHERS}`;
    this.#request = requestOf(address, path, accept);
  }

  /** Fetches the metrics; one call at a time. Throws ScrapeFailure or a network error. */
  async fetch(allowance: Allowance): Promise<Fetched> {
    const { head, body } = await new Promise<ResponseReader>((resolve, reject) => {
      const again = this.#socket !== undefined;
      this.#pending = { reader: new ResponseReader(allowance), allowance, again, resolve, reject };
      this.#send();
    });
    const format = head?.format ?? "prometheus";
    if (!head?.gzip) return { bytes: body.view, format, release: () => body.giveBack() };
    try {
      return { bytes: await unpacked(body.view, allowance), format, release: () => undefined };
    } finally {
      body.giveBack();
    }
  }

  /** Aborts the request in progress with the reason, and closes the connection. */
  close(reason: Error): void {
    const pending = this.#pending;
    this.#pending = undefined;
    this.#drop();
    pending?.reader.body.giveBack();
    pending?.reject(reason);
  }

  #send(): void {
    if (this.#socket) this.#socket.write(this.#request, "latin1");
    else this.#connect();
  }

  #connect(): void {
    let own: Socket | undefined;
    const onread = {
      buffer: received,
      callback: (count: number): boolean => {
        if (own && this.#socket === own) this.#take(received, count);
        return true;
      },
    };
    this.#giveUp = dial(this.#endpoint, { noDelay: true, ...(this.#tls ? {} : { onread }) }, (plain, problem) => {
      this.#giveUp = undefined;
      if (!plain) return this.close(problem ?? new ScrapeFailure("it cannot be reached"));
      own = this.#tls ? this.#secured(plain) : plain;
      this.#follow(own);
      own.write(this.#request, "latin1");
    });
  }

  #secured(plain: Socket): Socket {
    // Any certificate is accepted: the private address already identifies the machine.
    const socket: Socket = tlsConnect({ socket: plain, rejectUnauthorized: false });
    socket.on("data", (part: Buffer) => {
      if (this.#socket === socket) this.#take(part, part.length);
    });
    return socket;
  }

  #follow(socket: Socket): void {
    this.#socket = socket;
    // Events of an earlier connection are ignored.
    const mine = (what: () => void) => () => {
      if (this.#socket === socket) what();
    };
    let error: Error | undefined;
    socket.on("error", (thrown) => {
      error = thrown;
    });
    socket.on(
      "end",
      mine(() => this.#ended()),
    );
    socket.on(
      "close",
      mine(() => this.#ended(error)),
    );
  }

  #take(bytes: Buffer, count: number): void {
    const pending = this.#pending;
    if (!pending) {
      // Unrequested bytes.
      this.#drop();
      return;
    }
    pending.again = false;
    this.#progress(pending, () => pending.reader.take(bytes, count));
  }

  /** The target closed the connection: after the response, instead of one, or in the middle. */
  #ended(error?: Error): void {
    this.#drop();
    const pending = this.#pending;
    if (pending?.again) {
      pending.again = false;
      this.#send();
    } else if (error) this.close(error);
    else if (pending) this.#progress(pending, () => pending.reader.end());
  }

  #progress(pending: PendingScrape, step: () => void): void {
    try {
      step();
    } catch (thrown) {
      this.close(thrown as Error);
      return;
    }
    if (pending.reader.done) this.#finish(pending);
  }

  #finish(pending: PendingScrape): void {
    this.#pending = undefined;
    if (!pending.reader.keeps) this.#drop();
    pending.resolve(pending.reader);
  }

  #drop(): void {
    this.#giveUp?.();
    this.#giveUp = undefined;
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.destroy();
  }
}

function requestOf({ host, port }: Address, path: string, accept: string): string {
  const name = host.includes(":") ? `[${host}]` : host;
  const lines = HEADERS.map(([header, value]) => `${header}: ${value}\r\n`);
  // The path is its owner's text: nothing in it may end the line.
  const escaped = path.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent);
  const target = escaped.startsWith("/") ? escaped : `/${escaped}`;
  return `GET ${target} HTTP/1.1\r\nhost: ${name}:${port}\r\naccept: ${accept}\r\n${lines.join("")}\r\n`;
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
