/** The `hangar` command: nouns and verbs, made into a program. */
import { constants } from "node:os";
import { ClientError, type Outgoing } from "#client/client.ts";
import { messageOf } from "#core/assert.ts";
import { VERSION } from "#core/version.ts";
import { asCurl } from "./context.ts";
import { NotSent } from "./dry-run.ts";
import { errorText } from "./output.ts";
import { readPlainLine } from "./plain-line.ts";
import type { CommandLineEnd } from "./program.ts";
import { rewrite } from "./rewrites.ts";
import { runVerb } from "./run-verb.ts";
import { print, printError, printJson } from "./terminal-text.ts";
import { UsageError } from "./verb.ts";
import { verbsFor } from "./verbs.ts";

/** Exit codes: scripts branch on these. */
const EXIT = { ok: 0, failure: 1, usage: 2, auth: 3, not_found: 4, conflict: 5, timeout: 6, capacity: 7 } as const;
const EXIT_BY_STATUS: Record<number, number> = {
  400: EXIT.usage,
  401: EXIT.auth,
  403: EXIT.auth,
  404: EXIT.not_found,
  408: EXIT.timeout,
  409: EXIT.conflict,
  412: EXIT.capacity,
  422: EXIT.usage,
};

// What comes after -- are words for a machine, not for us.
const wants_json = process.argv.join("\0").split("\0--\0")[0]?.split("\0").includes("--json") === true;

/** What a dry run would have sent. */
function showHeldBack(request: Outgoing): void {
  const { method, url, body } = request;
  const { pathname, search } = new URL(url);
  // What is uploaded is no JSON; its stand-in says so.
  const sent = body?.startsWith("{") ? (JSON.parse(body) as unknown) : body;
  if (wants_json) printJson({ dry_run: true, method, path: pathname + search, body: sent });
  else print(`would send: ${asCurl(request)}`);
}

/** By its name: its class is loaded with commander. */
const isEnd = (thrown: unknown): thrown is CommandLineEnd =>
  thrown instanceof Error && thrown.name === "CommandLineEnd";

function report(thrown: unknown): void {
  if (thrown instanceof NotSent) {
    showHeldBack(thrown.request);
    return;
  }
  if (isEnd(thrown)) {
    process.exitCode = thrown.is_mistake ? EXIT.usage : EXIT.ok;
    if (wants_json && thrown.is_mistake) printJson({ error: thrown.message, status: "usage" });
    return;
  }
  const body = thrown instanceof ClientError ? thrown.body : {};
  const http = thrown instanceof ClientError ? thrown.http : 0;
  process.exitCode = thrown instanceof UsageError ? EXIT.usage : (EXIT_BY_STATUS[http] ?? EXIT.failure);
  if (wants_json) printJson({ error: messageOf(thrown), ...body });
  else printError(errorText(messageOf(thrown), body));
}

// Whoever reads may stop before the end, as `head` does. That is no mistake, and ends us as it ends any program.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(128 + constants.signals.SIGPIPE);
});

// An older Node has started this one, and was killed: whoever did that thinks that this has ended.
if (process.connected) {
  process.once("disconnect", () => process.exit(128 + constants.signals.SIGTERM));
  process.channel?.unref();
}

/** It takes no command to answer this: loading all of them takes three times as long. */
const asksVersion = process.argv.length === 3 && ["--version", "-V"].includes(process.argv[2] ?? "");

async function run(typed: readonly string[]): Promise<void> {
  const words = rewrite(typed);
  const verbs = await verbsFor(words[0] ?? "", words[1] ?? "");
  const plain = readPlainLine(verbs, words);
  if (plain) return await runVerb(plain.verb, plain.typed);
  const { runProgram } = await import("./program.ts");
  await runProgram(verbs, words, runVerb);
}

// No `await` out here: the bundle that is loaded fastest is not an ES module (scripts/bundle-cli.mjs).
if (asksVersion) process.stdout.write(`${VERSION}\n`);
else void run(process.argv.slice(2)).catch(report);
