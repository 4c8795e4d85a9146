/** Entry point of the `hangar` command. */
import { constants } from "node:os";
import { ClientError, type Outgoing } from "#client/client.ts";
import { messageOf } from "#core/assert.ts";
import { VERSION } from "#core/version.ts";
import { asCurl } from "./context.ts";
import type { Interrupted } from "./deploy/lease.ts";
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

// Arguments after -- belong to the command in the machine.
const wants_json = process.argv.join("\0").split("\0--\0")[0]?.split("\0").includes("--json") === true;

/** What a dry run would have sent. */
function showHeldBack(request: Outgoing): void {
  const { method, url, body } = request;
  const { pathname, search } = new URL(url);
  // An upload is not JSON; a placeholder stands for it.
  const sent = body?.startsWith("{") ? (JSON.parse(body) as unknown) : body;
  if (wants_json) printJson({ dry_run: true, method, path: pathname + search, body: sent });
  else print(`would send: ${asCurl(request)}`);
}

/** Compares the name, because only a deploy loads the class. */
const interruptExit = (thrown: unknown): number | undefined =>
  thrown instanceof Error && thrown.name === "Interrupted" ? (thrown as Interrupted).exit : undefined;

/** Compares the name, because importing the class would load commander. */
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
  process.exitCode =
    interruptExit(thrown) ?? (thrown instanceof UsageError ? EXIT.usage : (EXIT_BY_STATUS[http] ?? EXIT.failure));
  if (wants_json) printJson({ error: messageOf(thrown), ...body });
  else printError(errorText(messageOf(thrown), body));
}

// The reader of a pipe may close it early, as `head` does: exit silently as for SIGPIPE.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(128 + constants.signals.SIGPIPE);
});

// The parent is an older Node (bin/hangar.mjs): when it is killed, this process must exit too.
if (process.connected) {
  process.once("disconnect", () => process.exit(128 + constants.signals.SIGTERM));
  process.channel?.unref();
}

/** Answered without loading the commands, which takes three times as long. */
const is_version = process.argv.length === 3 && ["--version", "-V"].includes(process.argv[2] ?? "");

async function run(typed: readonly string[]): Promise<void> {
  const words = rewrite(typed);
  const verbs = await verbsFor(words[0] ?? "", words[1] ?? "");
  const plain = readPlainLine(verbs, words);
  if (plain) return await runVerb(plain.verb, plain.typed);
  const { runProgram } = await import("./program.ts");
  await runProgram(verbs, words, runVerb);
}

// No top-level `await`: the bundle is CommonJS, which loads fastest (scripts/bundle-cli.mjs).
if (is_version) process.stdout.write(`${VERSION}\n`);
else void run(process.argv.slice(2)).catch(report);
