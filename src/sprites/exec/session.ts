import type { Readable } from "node:stream";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { TerminalEnd, TerminalSize } from "#machines/runtime/driver.ts";
import { writeTo } from "#machines/runtime/machine-sessions.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import type { ExecInput } from "./input.ts";
import type { Program } from "./program.ts";

/** Who sees a session's output. */
export interface SessionClient {
  /** Resolves when it was taken, or the client has left. Called in order, also before the last call has resolved. */
  output(stream: number, piece: Buffer): Promise<void>;
  /** The last call. */
  ended(how: TerminalEnd): Promise<void>;
  /** It took nothing for too long, while others wait. */
  drop(): void;
}

interface Piece {
  stream: number;
  bytes: Buffer;
}

const KEPT_PIECE_BYTES = 4096;

/** A command with its clients. It outlives them, for as long as it may, and keeps the end of its output for the next. */
export class ExecSession {
  readonly id: string;
  readonly input: ExecInput;
  readonly created: number;
  /** Never rejects. Resolves when clients have been told. */
  readonly over: Promise<TerminalEnd>;
  readonly #program: Program;
  readonly #clock: Clock;
  readonly #clients = new Set<SessionClient>();
  readonly #kept: Piece[] = [];
  #kept_bytes = 0;
  #bytes = 0;
  #last: number;
  #left = new AbortController();
  #how: TerminalEnd | undefined;

  constructor(id: string, { input, program, clock }: { input: ExecInput; program: Program; clock: Clock }) {
    this.id = id;
    this.input = input;
    this.#program = program;
    this.#clock = clock;
    this.created = clock.now();
    this.#last = this.created;
    this.over = this.#run();
  }

  get ended(): Promise<TerminalEnd> {
    return this.#program.ended;
  }

  get last_activity(): number {
    return this.#last;
  }

  get has_clients(): boolean {
    return this.#clients.size > 0;
  }

  get bytes_per_second(): number {
    return Math.round((this.#bytes * 1000) / Math.max(1000, this.#clock.now() - this.created));
  }

  /** Shows the kept output, then what comes. */
  attach(client: SessionClient): void {
    const most = SPRITE_LIMITS.session_clients;
    if (this.#clients.size >= most)
      fail("limit_reached", `session ${this.id} has ${most} clients (limit session_clients)`);
    this.#left.abort();
    for (const { stream, bytes } of this.#kept) void client.output(stream, bytes);
    // A short command may be over before its own client is there.
    if (this.#how) void client.ended(this.#how);
    else this.#clients.add(client);
  }

  /** After the last client the command has as long as it was given. */
  detach(client: SessionClient): void {
    if (!this.#clients.delete(client) || this.#clients.size > 0) return;
    const limit_ms = this.input.run_after_disconnect_ms;
    if (limit_ms === undefined) return;
    this.#left = new AbortController();
    this.#clock.sleep(limit_ms, this.#left.signal).then(
      () => this.#program.close(),
      () => {},
    );
  }

  async write(bytes: Buffer): Promise<void> {
    this.#last = this.#clock.now();
    const { input } = this.#program;
    // Signals come behind input in one connection, so a program that does not read leaves room for them.
    if (input.writableLength < SPRITE_LIMITS.input_buffer_bytes) void input.write(bytes);
    else await writeTo(input, bytes);
  }

  endInput(): void {
    this.#program.endInput();
  }

  resize(size: TerminalSize): void {
    this.#program.resize(size);
  }

  signal(name: string): void {
    this.#program.signal(name);
  }

  /** Ends the command at once. */
  close(): void {
    this.#program.close();
  }

  async #run(): Promise<TerminalEnd> {
    const outputs = this.#program.outputs.map(({ number, stream }) => this.#pump(number, stream));
    const drained = Promise.all(outputs);
    const how = await this.#program.ended;
    // What the command has left running may hold its output open for ever.
    const waited = new AbortController();
    const late = this.#clock.sleep(SPRITE_LIMITS.output_after_end_ms, waited.signal).catch(() => {});
    await Promise.race([drained, this.#quiet(late)]);
    waited.abort();
    this.#left.abort();
    this.#how = how;
    await Promise.allSettled([...this.#clients].map((client) => client.ended(how)));
    this.#program.close();
    return how;
  }

  /** Resolves when no output came within a while: output that a client is slow to take is waited for. */
  async #quiet(first: Promise<void>): Promise<void> {
    await first;
    for (let seen = -1; seen !== this.#bytes || this.#sending > 0; ) {
      seen = this.#bytes;
      await this.#clock.sleep(SPRITE_LIMITS.output_after_end_ms);
    }
  }

  #sending = 0;

  async #pump(number: number, stream: Readable): Promise<void> {
    try {
      for await (const piece of stream) {
        this.#sending++;
        await this.#show({ stream: number, bytes: piece as Buffer }).finally(() => this.#sending--);
      }
    } catch {
      // Closed: the rest is not read.
    }
  }

  async #show(piece: Piece): Promise<void> {
    const { stream, bytes } = piece;
    this.#keep(piece);
    this.#bytes += bytes.length;
    this.#last = this.#clock.now();
    const clients = [...this.#clients];
    if (clients.length === 1) return await clients[0]?.output(stream, bytes);
    await Promise.all(clients.map((client) => this.#inTime(client, client.output(stream, bytes))));
  }

  #keep({ stream, bytes }: Piece): void {
    const last = this.#kept.at(-1);
    // Programs write lines; whoever attaches reads pages.
    if (last?.stream === stream && last.bytes.length < KEPT_PIECE_BYTES)
      last.bytes = Buffer.concat([last.bytes, bytes]);
    else this.#kept.push({ stream, bytes });
    this.#kept_bytes += bytes.length;
    for (
      let [first] = this.#kept;
      first && this.#kept_bytes > SPRITE_LIMITS.session_output_bytes;
      [first] = this.#kept
    ) {
      this.#kept.shift();
      this.#kept_bytes -= first.bytes.length;
    }
  }

  /** One of several clients does not hold up the others. */
  async #inTime(client: SessionClient, taken: Promise<void>): Promise<void> {
    const waited = new AbortController();
    const late = this.#clock.sleep(SPRITE_LIMITS.session_stall_ms, waited.signal).then(
      () => {
        this.#clients.delete(client);
        client.drop();
      },
      () => {},
    );
    await Promise.race([taken, late]);
    waited.abort();
  }
}
