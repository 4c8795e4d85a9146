/** Clients that continue on errors, and record every response. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { ControlNode } from "./cluster.ts";
import { ANY, type History, type Outcome, type Told } from "./history.ts";

export const MACHINES = "/v1/apps/web/machines";
const LEASE_TTL_S = 3;
/** Timeout of a client, long after any reachable server responds. */
const GIVE_UP_MS = 90_000;
const MOVABLE = { metadata: { hangar_on_host_loss: "move" } };
const CONFIG = { image: "web:1", guest: { cpus: 1, memory_mb: 256 } };
/** Machines that are made while faults come. */
const CREATED = 6;

interface Answer {
  status: number;
  body: Record<string, unknown>;
}

const OPEN = new Set<unknown>(["storage_failed", "internal"]);

/** These leave open whether it happened; every other refusal says that it did not. */
const isOpen = ({ status, body }: Answer): boolean => status >= 500 && OPEN.has(body["status"]);
const outcomeOf = (answer: Answer): Outcome => (answer.status < 300 ? "ok" : isOpen(answer) ? "unknown" : "fail");

export class Clients {
  readonly history: History;
  readonly #controls: readonly ControlNode[];
  readonly #dice: () => number;
  readonly #done: Promise<void>[] = [];
  #working = true;
  #given_up = false;
  #values = 0;

  constructor(controls: readonly ControlNode[], history: History, dice: () => number) {
    this.#controls = controls;
    this.history = history;
    this.#dice = dice;
  }

  /** Everything at once: registers of these machines, their leases, whether they may move, and new ones. */
  start({
    machines,
    toggled,
    leased,
  }: {
    machines: readonly string[];
    toggled: readonly string[];
    leased: string;
  }): void {
    const registers = machines.map((id) => `${MACHINES}/${id}/metadata/register`);
    for (let client = 0; client < 4; client++) this.#keepDoing(() => this.#useRegister(this.#pick(registers)));
    for (let client = 0; client < 2; client++) this.#keepDoing(() => this.#useLease(leased));
    for (const id of toggled) this.#keepDoing(() => this.#toggle(id));
    this.#keepDoing(() => this.#flip(this.#pick(machines)));
    this.#keepDoing(() => this.list(this.#pick(this.#controls)));
    this.#done.push(this.#createSome());
  }

  /** Ends them when each has its answer. */
  async stop(): Promise<void> {
    this.#working = false;
    await Promise.all(this.#done);
  }

  /** However the test ends, nobody goes on. What became of them, `stop` tells. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#working = false;
    this.#given_up = true;
    await Promise.allSettled(this.#done);
  }

  /** What is created under a key once; asked for until there is an answer that says so. */
  async create(config: object = CONFIG): Promise<string> {
    const key = { "idempotency-key": randomUUID() };
    let id = "";
    const control = this.#pick(this.#controls);
    await this.history.record({ kind: "create", process: ANY, key: "machines" }, async () => {
      const until = performance.now() + GIVE_UP_MS * 2;
      for (let tries = 0; performance.now() < until && !this.#given_up; tries++) {
        const asked = tries === 0 ? control : this.#pick(this.#controls);
        const attempt = { kind: "attempt", process: asked.name, key: "machines" } as const;
        const told = await this.history.record(attempt, async () => {
          const answer = await this.#call(asked, "POST", MACHINES, { config: { ...CONFIG, ...config } }, key);
          return { outcome: outcomeOf(answer), value: String(answer.body["id"]) };
        });
        if (told.outcome === "ok") {
          id = told.value ?? "";
          return told;
        }
        await delay(200);
      }
      return { outcome: "unknown" };
    });
    assert.notEqual(id, "", "a machine was created in the end");
    return id;
  }

  async read(control: ControlNode, register: string): Promise<Told> {
    return await this.history.record({ kind: "read", process: control.name, key: register }, async () => {
      const answer = await this.#call(control, "GET", register);
      if (answer.status === 404) return { outcome: "ok", value: undefined };
      return answer.status === 200 ? { outcome: "ok", value: String(answer.body["value"]) } : { outcome: "fail" };
    });
  }

  async write(control: ControlNode, register: string): Promise<Told> {
    const value = `v${++this.#values}`;
    const asked = { kind: "write", process: control.name, key: register, value } as const;
    return await this.history.record(asked, async () => ({
      outcome: outcomeOf(await this.#call(control, "POST", register, { value })),
    }));
  }

  async list(control: ControlNode): Promise<void> {
    await this.history.record({ kind: "list", process: control.name, key: "machines" }, async () => {
      const { status, body } = await this.#call(control, "GET", MACHINES);
      if (status !== 200) return { outcome: "fail" };
      return { outcome: "ok", values: (body as unknown as { id: string }[]).map(({ id }) => id) };
    });
  }

  async #useRegister(register: string): Promise<void> {
    const control = this.#pick(this.#controls);
    await (this.#dice() < 0.5 ? this.write(control, register) : this.read(control, register));
  }

  async #useLease(machine: string): Promise<void> {
    const control = this.#pick(this.#controls);
    const key = `${MACHINES}/${machine}/lease`;
    let nonce = "";
    const asked = { kind: "acquire", process: control.name, key, ttl_ms: LEASE_TTL_S * 1000 } as const;
    const { outcome } = await this.history.record(asked, async () => {
      const answer = await this.#call(control, "POST", key, { ttl: LEASE_TTL_S });
      if (answer.status === 201) nonce = (answer.body["data"] as { nonce: string }).nonce;
      return { outcome: outcomeOf(answer), value: nonce };
    });
    if (outcome !== "ok" || this.#dice() < 0.5) return;
    await this.history.record({ kind: "release", process: control.name, key, value: nonce }, async () => ({
      outcome: outcomeOf(await this.#call(control, "DELETE", key, undefined, { "svc-machine-lease-nonce": nonce })),
    }));
  }

  async #toggle(machine: string): Promise<void> {
    const kind = this.#dice() < 0.5 ? "stop" : "start";
    const control = this.#pick(this.#controls);
    await this.history.record({ kind, process: control.name, key: machine }, async () => ({
      outcome: outcomeOf(await this.#call(control, "POST", `${MACHINES}/${machine}/${kind}`, {})),
    }));
    await delay(500);
  }

  /** Machines become movable, and stop being so, at any moment. */
  async #flip(machine: string): Promise<void> {
    const value = this.#dice() < 0.5 ? "move" : "stay";
    await this.#call(this.#pick(this.#controls), "POST", `${MACHINES}/${machine}/metadata/hangar_on_host_loss`, {
      value,
    });
  }

  async #createSome(): Promise<void> {
    for (let made = 0; made < CREATED && this.#working; made++) {
      await this.create(made % 2 === 0 ? MOVABLE : {});
      for (let waited = 0; waited < 100 && this.#working; waited++) await delay(100);
    }
  }

  #keepDoing(act: () => Promise<unknown>): void {
    const work = async (): Promise<void> => {
      while (this.#working) {
        await act().catch(() => {});
        await delay(20 + this.#dice() * 80);
      }
    };
    this.#done.push(work());
  }

  /** One request, which is given up after a while. */
  async #call(
    { name, call }: ControlNode,
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error("no answer")), GIVE_UP_MS);
    try {
      const answer = await Promise.race([call(method, path, body, headers), late.promise]);
      if (answer.status === 500)
        this.history.unexpected.push(`${name}: ${method} ${path}: ${JSON.stringify(answer.body)}`);
      return answer;
    } finally {
      clearTimeout(timer);
    }
  }

  #pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.#dice() * all.length)] ?? assert.fail();
  }
}
