/** Fixtures for tests of whole nodes: nodes, applications and event readers that end with their test. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { PATIENCE_MS } from "../../../test/support.ts";
import { type Election, type RunningNode, type StartOptions, startNode } from "../commands.ts";
import { isBusy } from "../database/connections.ts";
import { Application } from "../database/fixtures.ts";
import { formatPosition } from "../position.ts";

/** Resources of a test, closed in reverse order when it ends. */
export class Scene {
  readonly #close: (() => unknown)[] = [];
  /** Log messages of the nodes, printed when the test fails. */
  readonly said: string[] = [];

  dir(): string {
    const dir = mkdtempSync(join(tmpdir(), "hangar-node-"));
    this.#close.push(() => rmSync(dir, { recursive: true, force: true }));
    return dir;
  }

  async app(dir: string, page_size?: number): Promise<PatientApplication> {
    const app = new PatientApplication(await whenFree(() => new Application(join(dir, "db"), page_size, 0)));
    this.#close.push(() => app.close());
    return app;
  }

  later(close: () => unknown): void {
    this.#close.push(close);
  }

  async start(dir: string, election: Election, more: Partial<StartOptions> = {}): Promise<RunningNode> {
    const running = await startNode({
      dir,
      host: "127.0.0.1",
      port: 0,
      election,
      clock: systemClock,
      log: (message) => this.said.push(message),
      onFailure: (error) => this.said.push(`failure: ${String(error)}`),
      ...more,
    });
    let open = true;
    const { close } = running;
    running.close = async () => {
      if (open) await close();
      open = false;
    };
    this.#close.push(() => running.close());
    return running;
  }

  listen(url: string): Line[] {
    const lines: Line[] = [];
    let rest = "";
    const request = get(`${url}/events`, (response) => {
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        const parts = (rest + text).split("\n");
        rest = parts.pop() ?? "";
        for (const part of parts) lines.push(JSON.parse(part) as Line);
      });
      response.on("error", () => undefined);
    });
    request.on("error", () => undefined);
    this.#close.push(() => request.destroy());
    return lines;
  }

  async end(): Promise<void> {
    for (const close of this.#close.reverse()) await close();
  }
}

/**
 * An application in the thread of the node. Waiting inside SQLite for a lock that the node holds, because it opens the
 * database or has writers wait, would keep the node from ever releasing it.
 */
export class PatientApplication {
  readonly #app: Application;

  constructor(app: Application) {
    this.#app = app;
  }

  get db(): DatabaseSync {
    return this.#app.db;
  }

  get written(): number {
    return this.#app.written;
  }

  /** One transaction. */
  async write(bytes?: number): Promise<void> {
    await whenFree(() => this.#app.write(bytes));
  }

  close(): void {
    if (this.#app.db.isOpen) this.#app.close();
  }
}

/** Runs `work` as soon as the lock is free, and yields to the event loop until then. */
async function whenFree<T>(work: () => T): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > end) throw error;
    }
    await new Promise((next) => {
      setTimeout(next, 2);
    });
  }
}

export interface Line {
  type: string;
  db?: string;
  data: Record<string, unknown>;
}

export function story(title: string, tell: (scene: Scene) => Promise<void>): void {
  test(title, async (t) => {
    const scene = new Scene();
    try {
      await tell(scene);
    } catch (thrown) {
      for (const message of scene.said) t.diagnostic(message);
      throw thrown;
    } finally {
      await scene.end();
    }
  });
}

/** Waits for a condition, and names it in the error on timeout. */
export async function until(what: string, done: () => boolean): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!done()) {
    if (performance.now() > end) assert.fail(`waited in vain: ${what}`);
    await new Promise((next) => {
      setTimeout(next, 2);
    });
  }
}

export function same(a: RunningNode, b: RunningNode, name = "db"): () => boolean {
  return () => {
    const [x, y] = [a.node.directory.get(name), b.node.directory.get(name)];
    return x !== undefined && y !== undefined && formatPosition(x.position) === formatPosition(y.position);
  };
}

/**
 * Snapshots that a primary has sent. It counts one when its last byte is handed over: the replica may have it a moment
 * before.
 */
export const sent = (primary: RunningNode): number => primary.node.streams.snapshots_sent;
