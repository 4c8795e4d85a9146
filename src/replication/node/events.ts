/**
 * GET /events: one JSON object per line, `init` first. A reader gets every event from the moment it connected, in
 * order, or is cut: what does not fit into its buffer is never left out silently.
 */
import type { ServerResponse } from "node:http";
import { isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { TransactionInfo } from "../database/state.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { hex16 } from "../position.ts";

/** What a node says about who is primary. `hostname` is the primary's, absent when it is this node, or nobody. */
export interface PrimaryStatus {
  isPrimary: boolean;
  hostname?: string;
}

export const EVENTS_HEADERS = { "content-type": "application/json", "cache-control": "no-store" } as const;

interface EventReader {
  response: ServerResponse;
  /** Lines the connection had no room for, and how many events they are. */
  waiting: Buffer[];
  events_waiting: number;
  blocked: boolean;
}

export class EventHub {
  readonly #readers = new Set<EventReader>();
  #status: PrimaryStatus = { isPrimary: false };
  #told = JSON.stringify(this.#status);
  /** Readers that were cut because they were too slow. */
  cut = 0;
  sent = 0;

  get readers(): number {
    return this.#readers.size;
  }

  get status(): PrimaryStatus {
    return this.#status;
  }

  /** Begins the answer. `init` and the first event after it have nothing between them: both happen here, at once. */
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

  /** Those that came together are sent together: one write for each reader. */
  transactions(db: string, infos: readonly TransactionInfo[]): void {
    if (this.#readers.size === 0) return;
    const name = JSON.stringify(db);
    let lines = "";
    for (const info of infos) lines += transactionLine(name, info);
    this.#broadcast(lines, infos.length);
  }

  /** Tells readers when it is different from what they were told last, and only then. */
  primaryChange(status: PrimaryStatus): void {
    const text = JSON.stringify(status);
    if (text === this.#told) return;
    this.#status = status;
    this.#told = text;
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

/** The specification always has a host name here: the primary's, or an empty one when that is this node or nobody. */
const named = ({ isPrimary, hostname = "" }: PrimaryStatus): Required<PrimaryStatus> => ({ isPrimary, hostname });

/** And here only when this node is not the primary. */
const initData = (status: PrimaryStatus): PrimaryStatus => (status.isPrimary ? { isPrimary: true } : named(status));

/** Put together by hand, for there are thousands a second; only the name, which is JSON already, can be anything. */
function transactionLine(db: string, { position, page_size, commit, timestamp_ms }: TransactionInfo): string {
  const [txid, checksum] = [hex16(position.txid), hex16(position.checksum)];
  const data = `"txID":"${txid}","postApplyChecksum":"${checksum}","pageSize":${page_size},"commit":${commit}`;
  return `{"type":"tx","db":${db},"data":{${data},"timestamp":"${isoTime(timestamp_ms)}"}}\n`;
}

function line(event: object): string {
  return `${JSON.stringify(event)}\n`;
}
