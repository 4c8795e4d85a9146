import { StoreError } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { Connector, PostgresConnection } from "./connection.ts";
import { type Deadline, DeadlineError, timeLeft } from "./deadline.ts";
import { troubleOf } from "./trouble.ts";

interface Waiter {
  deadline: Deadline;
  timer: NodeJS.Timeout;
  resolve(connection: PostgresConnection): void;
  reject(error: unknown): void;
}

/**
 * A bounded connection pool, last in, first out. A broken connection is replaced on demand; after one stopped
 * responding, idle ones are closed.
 */
export class Pool {
  readonly #connector: Connector;
  readonly #size: number;
  readonly #idle: PostgresConnection[] = [];
  readonly #used = new Set<PostgresConnection>();
  /** Connections that were opened before the last `doubt`: closed when they are released. */
  #doubted = new WeakSet<PostgresConnection>();
  #waiting: Waiter[] = [];
  #opening = 0;
  /** The server had no free connection: until this time no new one is opened while there are others. */
  #crowded_until = 0;
  #closed = false;
  #emptied = Promise.withResolvers<void>();
  readonly #sweep: NodeJS.Timeout;

  constructor(connector: Connector, size: number) {
    this.#connector = connector;
    this.#size = size;
    this.#sweep = setInterval(() => this.#closeUnused(), LIMITS.postgres_idle_ms / 2);
    this.#sweep.unref();
  }

  /** Exclusive until released. */
  async acquire(deadline: Deadline): Promise<PostgresConnection> {
    if (this.#closed) throw shuttingDown();
    const { promise, resolve, reject } = Promise.withResolvers<PostgresConnection>();
    const timer = setTimeout(() => {
      this.#waiting = this.#waiting.filter((one) => one !== waiter);
      reject(new DeadlineError(this.#used.size < this.#size ? "connection" : "pool"));
    }, timeLeft(deadline));
    const waiter: Waiter = { deadline, timer, resolve, reject };
    this.#waiting.push(waiter);
    this.#serve();
    return await promise;
  }

  release(connection: PostgresConnection): void {
    this.#used.delete(connection);
    if (this.#closed || this.#doubted.has(connection)) connection.close();
    else if (!connection.broken) this.#idle.push(connection);
    this.#serve();
    if (this.#closed && this.#used.size === 0) this.#emptied.resolve();
  }

  /** The server may be down or have changed its role: idle connections are closed now, others when released. */
  doubt(): void {
    for (const connection of this.#used) this.#doubted.add(connection);
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  /** Closes in bounded time: running calls have until `deadline`. */
  async close(deadline: Deadline): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#sweep);
    for (const { timer, reject } of this.#waiting.splice(0)) {
      clearTimeout(timer);
      reject(shuttingDown());
    }
    for (const connection of this.#idle.splice(0)) connection.close();
    if (this.#used.size === 0) return;
    const timer = setTimeout(() => this.#emptied.resolve(), timeLeft(deadline));
    await this.#emptied.promise;
    clearTimeout(timer);
    for (const connection of this.#used) connection.destroy();
  }

  #serve(): void {
    while (this.#waiting.length > 0) {
      const connection = this.#idle.pop();
      if (!connection) break;
      if (!connection.broken) this.#give(connection);
    }
    const total = this.#idle.length + this.#used.size + this.#opening;
    const crowded = this.#used.size > 0 && performance.now() < this.#crowded_until;
    if (this.#waiting.length > this.#opening && total < this.#size && !crowded) void this.#open();
  }

  #give(connection: PostgresConnection): void {
    const waiter = this.#waiting.shift();
    if (!waiter) return void this.#idle.push(connection);
    clearTimeout(waiter.timer);
    this.#used.add(connection);
    waiter.resolve(connection);
  }

  async #open(): Promise<void> {
    this.#opening++;
    try {
      const deadline = this.#waiting[0]?.deadline ?? 0;
      const connection = await this.#connector.connect(deadline);
      connection.onBroken = () => this.#forget(connection);
      if (this.#closed) connection.close();
      else this.#give(connection);
    } catch (thrown) {
      this.#failed(thrown);
    } finally {
      this.#opening--;
    }
    this.#serve();
  }

  /** Fails the longest waiting caller, unless open connections suffice: a full server is no failure then. */
  #failed(thrown: unknown): void {
    if (troubleOf(thrown) === "crowded") {
      this.#crowded_until = performance.now() + LIMITS.postgres_crowded_ms;
      if (this.#used.size > 0) return;
    }
    const waiter = this.#waiting.shift();
    if (!waiter) return;
    clearTimeout(waiter.timer);
    waiter.reject(thrown);
  }

  #forget(connection: PostgresConnection): void {
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
  }

  #closeUnused(): void {
    const unused = this.#idle.filter(({ idle_ms }) => idle_ms > LIMITS.postgres_idle_ms);
    for (const connection of unused) connection.close();
  }
}

const shuttingDown = (): StoreError =>
  new StoreError("shutting_down", "the platform is stopping and no longer reads or writes", { retry_after_s: 2 });
