/** A platform of several boxes with real machines: a PostgreSQL, controls and hosts, each on a box of its own. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { startPostgres } from "../postgres.ts";
import { busyboxLayer } from "../rootfs.ts";
import type { Child } from "./child.ts";
import { aLan, type Box, type Lan } from "./hosts-boxes.ts";

export interface HostBox {
  id: string;
  box: Box;
  data_dir: string;
  child: Child;
  /** The same data dir again, after its process is gone. */
  again(): Promise<void>;
}

export interface ControlBox {
  box: Box;
  base_url: string;
  /** The answer whatever it is; undefined when nobody answered. */
  call(
    method: string,
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Answer } | undefined>;
  /** An answer that must be a good one. */
  ask(method: string, path: string, body?: object): Promise<Answer>;
}

type Answer = Record<string, unknown>;

export interface House {
  lan: Lan;
  /** A folder here is an image of the same name; `busybox` is there. */
  images: string;
  dir: string;
  control(...flags: string[]): Promise<ControlBox>;
  host(...flags: string[]): Promise<HostBox>;
  restartDatabase(): Promise<void>;
}

export async function aHouse(t: TestContext, ...flags: string[]): Promise<House> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-house-"));
  // The last that was made goes first: machines before what they are made of, processes before their database.
  const made = new AsyncDisposableStack();
  t.after(() => made.disposeAsync());
  made.defer(() => rmSync(dir, { recursive: true, force: true }));
  const images = join(dir, "images");
  mkdirSync(images);
  busyboxLayer(join(images, "busybox"));
  const lan = aLan();
  const starting = startPostgres({ listen: lan.address });
  made.defer(async () => await (await starting).stop());
  // Before the database: its last packets go through here.
  made.defer(() => lan.close());
  const postgres = await starting;
  const name = new URL((await postgres.database()).replace("@/", "@localhost/")).pathname;
  const shared = ["--driver", "runc", "--database", `postgres://hangar@${lan.address}:5432${name}`, ...flags];
  const start = async (
    box: Box,
    data_dir: string,
    more: readonly string[],
  ): Promise<{ child: Child; told: string }> => {
    const args = ["--data-dir", data_dir, "--host-listen", `${box.address}:4281`, ...shared, ...more];
    const child = box.program("test/system/hosts-runc-node.ts", [images, ...args]);
    made.defer(async () => void (await child.kill()));
    return { child, told: (await child.until(/^ready /)).slice("ready ".length) };
  };
  let boxes = 0;
  const controls: ControlBox[] = [];
  const token = async (): Promise<string[]> => {
    const answer = await controls[0]?.ask("POST", "/v1/platform/host_join_tokens");
    return answer ? ["--join-token", String(answer["token"])] : [];
  };
  return {
    lan,
    images,
    dir,
    restartDatabase: () => postgres.restart(),
    async control(...more) {
      const box = await lan.box();
      const data_dir = join(dir, `box${++boxes}`);
      const role = ["--role", "control", "--listen", `${box.address}:4280`, "--proxy-listen-host", box.address];
      const { told: base_url } = await start(box, data_dir, [...role, ...(await token()), ...more]);
      const control = caller(box, base_url, readFileSync(join(data_dir, "token"), "utf8").trim());
      controls.push(control);
      return control;
    },
    async host(...more) {
      const box = await lan.box();
      const data_dir = join(dir, `box${++boxes}`);
      made.defer(async () => {
        const down = box.program("test/system/hosts-takedown.ts", [data_dir]);
        await down.ended;
        assert.deepEqual(down.lines, ["left {}"], `nothing of it is left: ${down.complaints}`);
      });
      const role = ["--role", "host", ...more];
      const { child, told } = await start(box, data_dir, [...role, ...(await token())]);
      const host: HostBox = {
        id: told,
        box,
        data_dir,
        child,
        async again() {
          host.child = (await start(box, data_dir, role)).child;
        },
      };
      return host;
    },
  };
}

function caller(box: Box, base_url: string, token: string): ControlBox {
  const call: ControlBox["call"] = async (method, path, body, more = {}) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...more };
    try {
      const answer = await fetch(`${base_url}${path}`, { method, headers, body: body ? JSON.stringify(body) : null });
      const text = await answer.text();
      return { status: answer.status, body: (text === "" ? {} : JSON.parse(text)) as Answer };
    } catch {
      return undefined;
    }
  };
  return {
    box,
    base_url,
    call,
    async ask(method, path, body) {
      const answer = await call(method, path, body);
      assert.ok(answer && answer.status < 300, `${method} ${path}: ${answer?.status} ${JSON.stringify(answer?.body)}`);
      return answer.body;
    },
  };
}
