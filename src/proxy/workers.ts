import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { Slots } from "./slots.ts";
import type { AppTable, Certificate, ClosedListener, Report, WorkerCommand, WorkerSettings } from "./table.ts";

interface WorkersParts {
  settings: Pick<WorkerSettings, "listen_host" | "fallback" | "region" | "host_id" | "buckets" | "traces">;
  /** 0 means one per core. */
  count: number;
  /** Maximum number, including draining ones. */
  most?: number;
  slots: Slots;
  clock: Clock;
  log: Log;
  /** Stored before anything is counted under it. */
  keepColour(colour: Colour): Promise<void>;
  /** Receives workers' reports, with the colour of their generation. */
  onReport(report: Report, colour: Colour): void;
  /** Called when the tables changed. */
  onTables?(): void;
}

export type Colour = "blue" | "green";

interface Member {
  thread: Worker;
  id: number;
  colour: Colour;
  problems: ClosedListener[];
  ended: Promise<void>;
}

/**
 * The worker threads, one per core, each listening on all ports (the kernel distributes connections). They start when
 * there is something to serve. A reload starts new ones, waits until they listen, and then drains the old ones, so that
 * there is always a listener.
 */
export class Workers {
  readonly #parts: WorkersParts;
  readonly #ticket_keys = randomBytes(48);
  readonly #apps = new Map<string, AppTable>();
  #certificates: Certificate[] = [];
  #challenges: Record<string, string> = {};
  #members: Member[] = [];
  /** New workers of a reload that are not all listening yet. They receive all commands too. */
  #fresh: Member[] = [];
  #reloading: Promise<void> = Promise.resolve();
  readonly #draining = new Set<Member>();
  #colour: Colour = "blue";
  #queries = 0;
  readonly #answers = new Map<string, () => void>();
  #closed = false;
  readonly #most: number;
  readonly #count: number;

  constructor(parts: WorkersParts) {
    this.#parts = parts;
    this.#most = parts.most ?? PROXY_LIMITS.workers;
    this.#count = Math.min(parts.count || availableParallelism(), Math.floor(this.#most / 2));
  }

  get colour(): Colour {
    return this.#colour;
  }

  get running(): number {
    return this.#members.length;
  }

  /** Ports that could not be opened, and why. */
  get problems(): ClosedListener[] {
    const all = this.#members.flatMap(({ problems }) => problems);
    return [...new Map(all.map((one) => [`${one.protocol} ${one.address} ${one.port}`, one])).values()];
  }

  /** The tables that all workers serve. */
  get tables(): { apps: AppTable[]; certificates: Certificate[] } {
    return { apps: [...this.#apps.values()], certificates: this.#certificates };
  }

  setApp(app: AppTable): void {
    this.#apps.set(app.app_id, app);
    this.#parts.onTables?.();
    if (this.#members.length === 0 && !this.#closed) this.#members = this.#startAll();
    else this.#send({ type: "app", app });
  }

  dropApp(app_id: string): void {
    if (!this.#apps.delete(app_id)) return;
    this.#parts.onTables?.();
    this.#send({ type: "no app", app_id });
  }

  setCertificates(certificates: Certificate[]): void {
    this.#certificates = certificates;
    this.#parts.onTables?.();
    this.#send({ type: "certificates", certificates });
  }

  setChallenges(answers: Record<string, string>): void {
    this.#challenges = answers;
    this.#send({ type: "challenges", answers });
  }

  /** Sends workers the reason why a port refuses connections; undefined when unknown. */
  explain(machine_id: string, port: number, reason: string | undefined): void {
    this.#send({ type: "unreachable", machine_id, port, reason });
  }

  /** Resolves when all commands so far are applied in every worker. */
  async settled(): Promise<void> {
    await Promise.all(this.#all().map((member) => this.#awaitReady(member)));
  }

  /** Counts under this colour from now on. */
  async turn(colour: Colour): Promise<void> {
    await this.#parts.keepColour(colour);
    this.#colour = colour;
  }

  /** Replaces all workers, without a moment in which nothing listens. */
  async reload(): Promise<void> {
    // One at a time: two reloads would replace the same workers and lose one set of new ones.
    const done = this.#reloading.then(() => this.#replace());
    this.#reloading = done.catch(() => {});
    await done;
  }

  async #replace(): Promise<void> {
    await this.turn(other(this.#colour));
    if (this.#members.length === 0) return;
    // Workers of earlier reloads may still be draining; without free slots nothing would listen.
    while (this.#members.length + this.#draining.size + this.#count > this.#most)
      await Promise.race([...this.#draining].map(({ ended }) => ended));
    if (this.#closed) return;
    keepHandshakes();
    this.#fresh = this.#startAll();
    await Promise.all(this.#fresh.map((member) => this.#awaitReady(member)));
    const old = this.#members;
    this.#members = this.#fresh;
    this.#fresh = [];
    for (const member of old) this.#drain(member, true);
  }

  /** Drains requests in flight. Patient: also those that are about to arrive on kept-alive connections. */
  async close(patient = false): Promise<void> {
    this.#closed = true;
    const all = this.#all();
    this.#members = [];
    this.#fresh = [];
    if (patient) keepHandshakes();
    for (const member of [...all, ...this.#draining]) this.#drain(member, patient);
    await Promise.all([...this.#draining].map(({ ended }) => ended));
  }

  #all(): Member[] {
    return [...this.#members, ...this.#fresh];
  }

  #startAll(): Member[] {
    const taken = new Set([...this.#members, ...this.#draining].map(({ id }) => id));
    const free = Array.from({ length: this.#most }, (_, id) => id).filter((id) => !taken.has(id));
    return free.slice(0, this.#count).map((id) => this.#start(id));
  }

  #start(id: number): Member {
    const { settings, slots, clock } = this.#parts;
    const workerData: WorkerSettings = {
      ...settings,
      worker: id,
      slots: slots.buffer,
      monotonic_ms: clock.monotonic(),
      ticket_keys: this.#ticket_keys,
    };
    const thread = new Worker(new URL("./plane/worker.ts", import.meta.url), { workerData });
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const member: Member = { thread, id, colour: this.#colour, problems: [], ended };
    const post = (order: WorkerCommand): void => thread.postMessage(order);
    thread.on("message", (report: Report) => this.#onReport(member, report));
    thread.on("error", (error: unknown) =>
      this.#parts.log.error({ error, worker: id }, "a worker of the proxy failed"),
    );
    thread.on("exit", () => {
      this.#exited(member);
      resolve();
    });
    post({ type: "certificates", certificates: this.#certificates });
    post({ type: "challenges", answers: this.#challenges });
    for (const app of this.#apps.values()) post({ type: "app", app });
    return member;
  }

  #onReport(member: Member, report: Report): void {
    if (report.type === "ready") this.#answers.get(`${member.id} ${report.id}`)?.();
    else if (report.type === "listeners") member.problems = report.failed;
    this.#parts.onReport(report, member.colour);
  }

  /** Replaces a worker that exited unexpectedly; its load is freed. */
  #exited(member: Member): void {
    this.#parts.slots.forget(member.id);
    this.#draining.delete(member);
    for (const [key, done] of this.#answers) if (key.startsWith(`${member.id} `)) done();
    const mates = this.#members.includes(member) ? this.#members : this.#fresh;
    const at = mates.indexOf(member);
    if (at < 0 || this.#closed) return;
    mates.splice(at, 1);
    void this.#parts.clock.sleep(PROXY_LIMITS.retry_ms).then(() => {
      // Unless its whole generation was replaced meanwhile.
      const wanted = mates === this.#members || mates === this.#fresh;
      if (wanted && !this.#closed) mates.push(this.#start(member.id));
    });
  }

  #drain(member: Member, patient: boolean): void {
    this.#draining.add(member);
    member.thread.postMessage({ type: "drain", patient } satisfies WorkerCommand);
  }

  #send(order: WorkerCommand): void {
    for (const { thread } of this.#all()) thread.postMessage(order);
  }

  async #awaitReady(member: Member): Promise<void> {
    const id = ++this.#queries;
    const { promise, resolve } = Promise.withResolvers<void>();
    const key = `${member.id} ${id}`;
    this.#answers.set(key, resolve);
    member.thread.postMessage({ type: "ready?", id } satisfies WorkerCommand);
    await promise;
    this.#answers.delete(key);
  }
}

const other = (colour: Colour): Colour => (colour === "blue" ? "green" : "blue");

const MIGRATE = "/proc/sys/net/ipv4/tcp_migrate_req";

/**
 * Lets the kernel move connections from the accept queue of a closing listener to another one on the same port
 * (tcp_migrate_req). Where that cannot be set, those few clients are refused and retry.
 */
function keepHandshakes(): void {
  try {
    if (existsSync(MIGRATE)) writeFileSync(MIGRATE, "1");
  } catch {
    // Not permitted, or a read-only /proc.
  }
}
