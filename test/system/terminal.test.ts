/** A person at a terminal (script(1) makes a real one) in a real machine. */
import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { WebSocket } from "ws";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { runcMissing } from "#drivers/choice.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { PATIENCE_MS, tempDir, until } from "../support.ts";
import { ROOT } from "./child.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { census, nodeIdOf } from "./leaks.ts";

const missing = runcMissing() ?? (spawnSync("which", ["script"]).status === 0 ? undefined : "there is no script(1)");

class Person {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<number | null>;
  /** All that was drawn since the last thing that was waited for. */
  screen = "";
  #look = (): void => {};

  constructor(command: string) {
    this.#child = spawn("script", ["-qefc", `stty rows 30 cols 100; ${command}`, "/dev/null"], { cwd: ROOT });
    this.#child.stdout.on("data", (piece: Buffer) => {
      this.screen += piece.toString();
      this.#look();
    });
    this.ended = once(this.#child, "close").then(([code]) => code as number | null);
    void this.ended.then(() => this.#look());
  }

  type(keys: string): void {
    this.#child.stdin.write(keys);
  }

  async sees(wanted: RegExp): Promise<string> {
    const late = AbortSignal.timeout(PATIENCE_MS);
    late.addEventListener("abort", () => this.#look());
    for (;;) {
      const found = wanted.exec(this.screen);
      if (found) {
        const seen = this.screen.slice(0, found.index + found[0].length);
        this.screen = this.screen.slice(seen.length);
        return seen;
      }
      assert.equal(this.#child.exitCode, null, `it ended without ${wanted}: ${this.screen.slice(-2000)}`);
      assert.ok(!late.aborted, `it does not show ${wanted}: ${JSON.stringify(this.screen.slice(-2000))}`);
      await new Promise<void>((resolve) => {
        this.#look = resolve;
      });
    }
  }

  leave(): void {
    this.#child.stdin.end();
    this.#child.kill("SIGKILL");
  }
}

suite("terminal in a real machine", { skip: missing }, () => {
  const data_dir = tempDir();
  const ends: (() => unknown)[] = [];
  const people: Person[] = [];
  let daemon: Daemon;
  let id = "";
  const at = (command: string): Person => {
    const person = new Person(
      `exec "${process.execPath}" src/cli/main.ts --data-dir "${data_dir}" ${command.replaceAll("$ID", id)}`,
    );
    people.push(person);
    return person;
  };
  const path = (rest: string): string => `/v1/apps/web/machines/${id}${rest}`;
  const inside = async (...command: string[]): Promise<string> => {
    const { status, body } = await daemon.call("POST", path("/exec"), { command });
    assert.equal(status, 200, JSON.stringify(body));
    return String(body["stdout"]);
  };

  before(async () => {
    daemon = await startDaemon({ after: (end) => ends.push(end as () => unknown) }, data_dir, ["--driver", "runc"]);
    await daemon.call("POST", "/v1/apps", { app_name: "web" });
    const made = await daemon.call("POST", "/v1/apps/web/machines", { config: { image: "hangar/hello" } });
    id = String(made.body["id"]);
    const { status } = await daemon.call("GET", path("/wait?state=started&timeout=120"));
    assert.equal(status, 200);
  });

  after(async () => {
    for (const person of people) person.leave();
    try {
      await until("it takes the order", async () => (await daemon.call("DELETE", path("?force=true"))).status < 300);
      await until("it is destroyed", async () => (await daemon.call("GET", path(""))).body["state"] === "destroyed");
    } finally {
      for (const end of ends) await end();
      if (existsSync(join(data_dir, "node_id")))
        await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
    }
    assert.deepEqual(census({ data_dir, node_id: nodeIdOf(data_dir) }), {});
  });

  test("an editor works, Ctrl-C ends only the program, 1 MiB arrives complete, the exit code is returned", async () => {
    const person = at("ssh $ID");
    await person.sees(/# /);
    person.type("tty; stty size\r");
    await person.sees(/\/dev\/pts\/\d+\r\n30 100\r\n/);
    person.type("top\r");
    await person.sees(/Mem:[\s\S]*COMMAND/);
    person.type("\u0003");
    await person.sees(/# /);
    person.type("vi /tmp/note\r");
    await person.sees(/\[28;1H~[\s\S]*- \/tmp\/note/);
    for (const [keys, seen] of [
      ["i", /I \/tmp\/note/],
      ["hello", /hello/],
      ["\u001b", /- \/tmp\/note/],
      [":wq\r", /# /],
    ] as const) {
      person.type(keys);
      await person.sees(seen);
    }
    assert.equal(await inside("cat", "/tmp/note"), "hello\n");
    person.type("head -c 1048576 /dev/zero | tr '\\0' @; echo; exit 7\r");
    assert.equal(await person.ended, 7);
    assert.equal((person.screen.match(/@/g) ?? []).length, 1024 * 1024 + 1, "all of it, and the one that was typed");
  });

  test("--tty runs a given program, reports a missing one, and needs a terminal", async () => {
    const own = at("machines exec $ID --tty -- sh -c 'test -t 0 && test -t 1 && echo two ends; exit 5'");
    assert.equal(await own.ended, 5);
    assert.match(own.screen, /two ends/);
    const none = at("machines exec $ID --tty -- nosuch");
    assert.equal(await none.ended, 127);
    assert.match(none.screen, /cannot run nosuch: there is no such program in the image/);
    const pipe = at("machines exec $ID --tty -- true | cat");
    await pipe.ended;
    assert.match(pipe.screen, /--tty needs a terminal/);
  });

  test("a program blocks while its output is not read, and continues afterwards", async () => {
    // Long lines: on a busy box, too, the buffers on the way are soon full.
    const script = `i=0; while :; do i=$((i+1)); echo the number of this line is $i ${"-".repeat(4000)}; echo $i > /tmp/n; done`;
    const query = new URLSearchParams(["sh", "-c", script].map((word): [string, string] => ["command", word]));
    const headers = { authorization: `Bearer ${daemon.token}` };
    const line = new WebSocket(`${daemon.base_url.replace("http", "ws")}${path(`/terminal?${query.toString()}`)}`, {
      headers,
    });
    await once(line, "message");
    line.pause();
    const reached = async (): Promise<number> => Number(await inside("cat", "/tmp/n"));
    let now = 0;
    const isStill = async (): Promise<boolean> => {
      const before = now;
      now = await reached();
      return now > 0 && now === before;
    };
    await until("it stands still", isStill, { every_ms: 500 });
    line.resume();
    await until("it goes on", async () => (await reached()) > now);
    line.terminate();
    await until("it is ended", async () => !/number of this line/.test(await inside("ps")));
  });

  test("a suspend ends an open terminal with a message", async () => {
    const person = at("ssh $ID");
    await person.sees(/# /);
    await daemon.call("POST", path("/suspend"));
    assert.equal(await person.ended, 137);
    const { body } = await daemon.call("GET", path("/wait?state=settled&timeout=120"));
    assert.match(String(body["state"]), /suspended|stopped/);
    const refused = at("ssh $ID");
    assert.notEqual(await refused.ended, 0);
    assert.match(refused.screen, /it must be started/);
  });
});
