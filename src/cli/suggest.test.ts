import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { rewrite } from "./rewrites.ts";
import { suggestion } from "./suggest.ts";
import { allVerbs } from "./verbs.ts";

const FIRST = [...new Set((await allVerbs()).map(({ words }) => words.split(" ")[0] ?? ""))];
const suggest = (typed: string): string =>
  /Did you mean (.*)\?/.exec(suggestion(typed, FIRST, { synonyms: true }))?.[1] ?? "";

suite("suggestions for mistyped commands", () => {
  test("a typo is corrected, and a command of another tool is mapped", () => {
    const meant = {
      depoy: "deploy",
      machnes: "machines",
      log: "logs",
      stauts: "status",
      scal: "scale",
      lunch: "launch",
    };
    for (const [typed, command] of Object.entries(meant)) assert.equal(suggest(typed), command, typed);
    assert.equal(suggest("shell"), "ssh");
    assert.equal(suggest("open"), "services");
    assert.equal(suggest("restart"), "machines restart");
  });

  test("another word is not taken for a typo", () => {
    for (const typed of ["ping", "curl", "dig", "wireguard", "xyz", "go"]) assert.equal(suggest(typed), "", typed);
  });

  test("every synonym and rewritten line names a command that exists", async () => {
    const all = (await allVerbs()).map(({ words }) => words);
    const known = (line: string) => all.some((words) => words === line || words.startsWith(`${line} `));
    for (const typed of [
      "attach",
      "checks",
      "config",
      "domains",
      "exec",
      "login",
      "pull",
      "push",
      "rm",
      "tail",
      "tunnel",
    ]) {
      const commands = suggest(typed)
        .split(" or ")
        .map((line) => line.replace(/ --.*/, ""));
      for (const command of commands) assert.ok(known(command), `${typed}: ${command}`);
    }
    for (const typed of [
      "ssh console",
      "scale count",
      "scale show",
      "ips allocate-v4",
      "certs create",
      "machine status",
    ]) {
      const ours = rewrite(typed.split(" ")).join(" ").replace(/ --.*/, "");
      assert.ok(ours !== typed && known(ours), `${typed}: ${ours}`);
    }
    assert.deepEqual(rewrite(["ssh", "web"]), ["ssh", "web"]);
  });
});
