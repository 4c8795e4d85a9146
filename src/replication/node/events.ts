/**
 * GET /events: one JSON object per line, `init` first. A reader receives every event from the moment it connected, in
 * order, or is disconnected: events that do not fit into its buffer are never dropped silently.
 */
import type { ServerResponse } from "node:http";
import { isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { TransactionInfo } from "../database/state.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { hex16 } from "../position.ts";

/** The primary as a node knows it. `hostname` is absent when this node is primary, or none is known. */
export interface PrimaryStatus {
  isPrimary: boolean;
  hostname?: string;
}

export const EVENTS_HEADERS = { "content-type": "application/json", "cache-control": "no-store" } as const;

interface EventReader {
  response: ServerResponse;
  /** Lines that wait for the connection to drain, and how many events they are. */
  waiting: Buffer[];
  events_waiting: number;
  blocked: boolean;
}

export class EventHub {
  readonly #readers = new Set<EventReader>();
  #status: PrimaryStatus = { isPrimary: false };
  #sent = JSON.stringify(this.#status);
  /** Readers that were disconnected because they were too slow. */
  cut = 0;
  sent = 0;

  get readers(): number {
    return this.#readers.size;
  }

  get status(): PrimaryStatus {
    return this.#status;
  }

  /** Begins the response. No event can be lost between `init` and the next one: both are handled synchronously. */
  subscribe(response: ServerResponse): void {
    if (this.#readers.size >= REPLICATION_LIMITS.event_readers) {
      fail("overloaded", `event_readers: ${REPLICATION_LIMITS.event_readers} readers are connected`);
    }
    response.writeHead(200, EVENTS_HEADERS);
    const reader: EventReader = { response, waiting: [], events_waiting: 0, blocked: false };
    this.#readers.add(reader);
    response.on("drain", () => this.#drained(reader));
    response.on("close", () => this.#readers.delete(reader));
    response.on("error", () => this.#readers.delete(reader));
    this.#send(reader, Buffer.from(line({ type: "init", data: initData(this.#status) })), 1);
  }

  /** Sends a batch in one write for each reader. */
  transactions(db: string, infos: readonly TransactionInfo[]): void {
    if (this.#readers.size === 0) return;
    const name = JSON.stringify(db);
    let lines = "";
    for (const info of infos) lines += transactionLine(name, info);
    this.#broadcast(lines, infos.length);
  }

  /** Sends readers the status, if it differs from the last one sent. */
  primaryChange(status: PrimaryStatus): void {
    const text = JSON.stringify(status);
    if (text === this.#sent) return;
    this.#status = status;
    this.#sent = text;
    this.#broadcast(line({ type: "primaryChange", data: named(status) }), 1);
  }

  close(): void {
    for (const { response } of this.#readers) response.end();
    this.#readers.clear();
  }

  #broadcast(lines: string, events: number): void {
    const bytes = Buffer.from(lines);
    for (const reader of this.#readers) this.#send(reader, bytes, events);
  }

  #send(reader: EventReader, bytes: Buffer, events: number): void {
    if (reader.blocked) {
      reader.waiting.push(bytes);
      reader.events_waiting += events;
      if (reader.events_waiting > REPLICATION_LIMITS.events_waiting) this.#cut(reader);
      return;
    }
    this.sent += events;
    reader.blocked = !reader.response.write(bytes);
  }

  #drained(reader: EventReader): void {
    reader.blocked = false;
    const waiting = reader.waiting.splice(0);
    if (waiting.length === 0) return;
    this.sent += reader.events_waiting;
    reader.events_waiting = 0;
    reader.blocked = !reader.response.write(Buffer.concat(waiting));
  }

  #cut(reader: EventReader): void {
    this.cut++;
    this.#readers.delete(reader);
    reader.response.destroy();
  }
}

/** The specification always has a host name here: the primary's, or an empty one for this node or without a primary. */
const named = ({ isPrimary, hostname = "" }: PrimaryStatus): Required<PrimaryStatus> => ({ isPrimary, hostname });

/** And here only when this node is not the primary. */
const initData = (status: PrimaryStatus): PrimaryStatus => (status.isPrimary ? { isPrimary: true } : named(status));

/** Concatenated by hand, because there are thousands a second; only the name, already JSON, is arbitrary. */
function transactionLine(db: string, { position, page_size, commit, timestamp_ms }: TransactionInfo): string {
  const [txid, checksum] = [hex16(position.txid), hex16(position.checksum)];
  const data = `"txID":"${txid}","postApplyChecksum":"${checksum}","pageSize":${page_size},"commit":${commit}`;
  return `{"type":"tx","db":${db},"data":{${data},"timestamp":"${isoTime(timestamp_ms)}"}}\n`;
}

function line(event: object): string {
  return `${JSON.stringify(event)}\n`;
}
