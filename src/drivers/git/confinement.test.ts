import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { GIT_LIMITS } from "#git/limits.ts";
import { tempDir, until } from "../../../test/support.ts";
import { NamespaceConfinement } from "./confinement.ts";

const limits = GIT_LIMITS;
const skip = new NamespaceConfinement({ root: "/nonexistent", installed: "/nonexistent", limits }).problem();

function processesWith(marker: string): string[] {
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(marker);
      } catch {
        return false;
      }
    });
}

suite("confined Git", { skip }, () => {
  test("ends with all that it started when it is aborted, although it neither reads nor writes", async () => {
    const dir = tempDir();
    mkdirSync(join(dir, "app"));
    const confinement = new NamespaceConfinement({ root: join(dir, "root"), installed: dir, limits });
    const stop = new AbortController();
    const marker = `confined-${process.pid}`;
    // A shell that only computes: nothing tells it that its pipes are closed.
    const args = ["-c", `alias.spin=!printf 'spins\\n'; while :; do :; done; : ${marker}`, "spin"];
    const child = confinement.spawn({ program: "git", args, dir: join(dir, "app"), signal: stop.signal });
    child.on("error", () => {});
    const ended = once(child, "exit");
    await once(child.stdout ?? assert.fail("it has an output"), "data");
    assert.notDeepEqual(processesWith(marker), []);
    stop.abort();
    await ended.catch(() => {});
    await until("nothing of it runs", () => Promise.resolve(processesWith(marker).length === 0 || undefined));
  });
});
