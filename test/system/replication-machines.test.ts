/** examples/replicated-sqlite in two real machines with a volume each: the primary's machine dies, the other takes over. */
import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { messageOf } from "#core/assert.ts";
import { freePort } from "#proxy/fixtures.ts";
import { busyboxLayer, programLayer, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { ROOT } from "./child.ts";
import { type Caller, realPlatform } from "./runc-support.ts";

const BASE = "/v1/apps/notes";
/** What `db node` needs of the project. */
const PARTS = ["src", "package.json", "node_modules/jose", "node_modules/smol-toml"];

/** An image with Node, the example, and of the `hangar` command the part the example uses. */
function exampleImage(dir: string): void {
  programLayer(busyboxLayer(dir), process.execPath, "node");
  cpSync(join(ROOT, "examples/replicated-sqlite"), join(dir, "app"), { recursive: true });
  for (const part of PARTS) cpSync(join(ROOT, part), join(dir, "hangar", part), { recursive: true, dereference: true });
  mkdirSync(join(dir, "data"));
  const command = join(dir, "usr/bin/hangar");
  writeFileSync(
    command,
    '#!/bin/sh\n[ "$1 $2" = "db node" ] && shift 2 && exec node /hangar/src/replication/main.ts "$@"\n',
  );
  for (const file of [command, join(dir, "app/start.sh")]) chmodSync(file, 0o755);
}

class Notes {
  readonly #caller: Caller;
  /** Where the app is reached from outside. */
  readonly #port: number;
  readonly #machines: string[] = [];

  constructor(caller: Caller, port: number) {
    this.#caller = caller;
    this.#port = port;
  }

  async ask(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const answer = await this.#caller.ask(method, `${BASE}${path}`, body);
    assert.ok(answer && answer.status < 300, `${method} ${path}: ${JSON.stringify(answer)}`);
    return answer.body;
  }

  async machine(name: string): Promise<string> {
    const volume = await this.ask("POST", "/volumes", { name, size_gb: 1, require_unique_zone: false });
    const mounts = [{ volume: volume["id"], path: "/data" }];
    const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: this.#port, handlers: ["http"] }] }];
    const config = { image: "notes", init: { exec: ["/app/start.sh"] }, mounts, services, restart: { policy: "no" } };
    const { id } = await this.ask("POST", "/machines", { name, config });
    await this.ask("GET", `/machines/${String(id)}/wait?timeout=120`);
    this.#machines.push(String(id));
    return String(id);
  }

  /** What a program in the machine gets from the application beside it; empty when it gets nothing. */
  async http(machine: string, words: string): Promise<string> {
    const command = ["sh", "-c", `wget -q -O - ${words} 2>&1`];
    const answer = await this.#caller.ask("POST", `${BASE}/machines/${machine}/exec`, { command, timeout: 30 });
    return ((answer?.body ?? {}) as { stdout?: string }).stdout ?? "";
  }

  /** Asks through the edge proxy, which chooses a machine. Undefined when none answered. */
  async outside(path: string, body?: string): Promise<{ status: number; text: string } | undefined> {
    const how = body === undefined ? {} : { method: "POST", body };
    const answer = await fetch(`http://127.0.0.1:${this.#port}${path}`, how).catch(() => undefined);
    return answer && { status: answer.status, text: await answer.text() };
  }

  /** Where the application says a write belongs. */
  async replay(machine: string): Promise<string> {
    const script =
      "fetch('http://127.0.0.1:8080/notes', {method: 'POST'}).then((r) => console.log(r.headers.get('svc-replay')))";
    const answer = await this.ask("POST", `/machines/${machine}/exec`, {
      command: ["node", "-e", script],
      timeout: 30,
    });
    return String(answer["stdout"]).trim();
  }

  async role(machine: string): Promise<string> {
    return (await this.http(machine, "http://127.0.0.1:8080/health")).trim();
  }

  /** True when it was acknowledged. */
  async write(machine: string, text: string): Promise<boolean> {
    return (await this.http(machine, `--post-data=${text} http://127.0.0.1:8080/notes && echo done`)).trim() === "done";
  }

  async read(machine: string): Promise<string[]> {
    const text = await this.http(machine, "http://127.0.0.1:8080/notes");
    return text.startsWith("[") ? (JSON.parse(text) as { text: string }[]).map((note) => note.text) : [];
  }

  /** Waits until a machine has these. If it never has, what the machines said may tell why. */
  async arrive(machine: string, wanted: readonly string[]): Promise<void> {
    const there = async (): Promise<boolean> => {
      const found = await this.read(machine);
      return wanted.every((text) => found.includes(text));
    };
    await until(`${machine} has ${wanted.length} notes`, there).catch(async (error: unknown) => {
      throw new Error(
        `${messageOf(error)}\n${(await Promise.all(this.#machines.map((id) => this.#said(id)))).join("\n")}`,
      );
    });
  }

  async #said(machine: string): Promise<string> {
    const { lines } = (await this.ask("GET", `/machines/${machine}/logs?tail=60`)) as { lines: { message: string }[] };
    return [machine, ...lines.map(({ message }) => message)].join("\n  ");
  }

  /** The machine whose node has the lease, once its application may write. */
  async primary(of: readonly string[]): Promise<string> {
    let found: string | undefined;
    const chosen = async (): Promise<boolean> => {
      const { lease } = (await this.ask("GET", "/db_leases/default")) as { lease: { url: string } | null };
      found = of.find((id) => lease?.url.includes(id));
      return found !== undefined && (await this.role(found)) === "primary";
    };
    await until(`one of ${of.join(", ")} is primary`, chosen);
    return found ?? "";
  }
}

suite("replication example in real machines", {
  skip: volumesMissing() ?? realMachinesMissing(),
  timeout: 600_000,
}, () => {
  test("when the primary's machine dies the other takes over, and no note is lost", async (t) => {
    const real = realPlatform(t);
    exampleImage(join(real.images, "notes"));
    const caller = await real.start();
    await caller.ask("POST", "/v1/apps", { app_name: "notes" });
    await caller.ask("POST", `${BASE}/ip_assignments`, { type: "shared_v4" });
    const notes = new Notes(caller, await freePort());
    const machines = [await notes.machine("one"), await notes.machine("two")];
    const first = await notes.primary(machines);
    const second = machines.find((id) => id !== first) ?? "";
    const before = ["a", "b", "c"];
    for (const text of before) assert.ok(await notes.write(first, text), `${text} is acknowledged`);
    await notes.arrive(second, before);
    assert.equal(await notes.role(second), "replica");
    assert.equal(await notes.replay(second), `instance=${first}`, "a write there goes to the primary");

    // From outside, requests at once reach both machines; a write is done by the primary all the same.
    const roles = new Set<string | undefined>();
    await until("both machines answer from outside", async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => notes.outside("/health")));
      for (const answer of answers) roles.add(answer?.text);
      return roles.has("primary\n") && roles.has("replica\n");
    });
    const more = Array.from({ length: 16 }, (_, i) => `outside ${i}`);
    for (const answer of await Promise.all(more.map((text) => notes.outside("/notes", text)))) {
      assert.equal(answer?.status, 201, JSON.stringify(answer));
    }
    before.push(...more);
    await notes.arrive(second, before);

    await notes.ask("POST", `/machines/${first}/stop`, { signal: "SIGKILL" });
    assert.equal(await notes.primary([second]), second);
    assert.deepEqual((await notes.read(second)).sort(), before.sort(), "nothing that was acknowledged is lost");
    assert.ok(await notes.write(second, "d"));

    await notes.ask("POST", `/machines/${first}/start`);
    await notes.arrive(first, [...before, "d"]);
    assert.equal(await notes.role(first), "replica");
  });
});
