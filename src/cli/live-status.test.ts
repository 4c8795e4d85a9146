import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { LiveStatus } from "./live-status.ts";

function output(isTTY: boolean) {
  const written: string[] = [];
  return { isTTY, columns: 40, write: (text: string) => written.push(text), text: () => written.join("") };
}

suite("live status", () => {
  test("a pipe gets a plain line for each change and no escape sequence", () => {
    const pipe = output(false);
    const status = new LiveStatus(pipe);
    for (const text of ["starting", "starting", "started", "started"]) status.set("web-1", text);
    status.end("web-1", "web-1 is healthy");
    const lines = pipe.text().replaceAll(/^ *\d+\.\d s {2}/gm, "");
    assert.equal(lines, "web-1: starting\nweb-1: started\nweb-1 is healthy\n");
  });

  test("a terminal shows one line for each thing in progress, cut to its width", () => {
    const terminal = output(true);
    const status = new LiveStatus(terminal);
    status.set("web-1", "starting");
    status.set("web-2", "x".repeat(100));
    status.say("a line that stays");
    const last = terminal.text().split("\u001b[J").at(-1) ?? "";
    assert.match(last, /^a line that stays\n +0\.\d s {2}web-1: starting\n +0\.\d s {2}web-2: x+\n$/);
    assert.ok(last.split("\n").every((line) => line.length < 40));
    status.end("web-1");
    status.end("web-2", "web-2 is healthy");
    assert.match(terminal.text().split("\u001b[1A\u001b[J").at(-1) ?? "", /^ +0\.\d s {2}web-2 is healthy\n$/);
  });
});
