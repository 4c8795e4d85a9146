/**
 * Runs a node and an application side by side, and never one without the other:
 *
 *   node supervisor.mjs NODE-COMMAND… -- APP-COMMAND…
 *
 * The node starts first; the application when the node answers. When the node ends, however it ends, the application is
 * stopped: without a node nobody would capture what it writes, nor keep it from writing on a replica. When the
 * application ends, the node is stopped after it, and the exit code is the application's. What starts both again is
 * the restart policy of the machine.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";

const STOP_MS = Number(process.env.STOP_MS ?? 10_000);
const START_MS = 60_000;

const words = process.argv.slice(2);
const split = words.indexOf("--");
if (split < 1 || split === words.length - 1) {
  say("usage: node supervisor.mjs NODE-COMMAND... -- APP-COMMAND...");
  process.exit(2);
}
const node = start(words.slice(0, split), "pipe");
node.stdout.pipe(process.stdout);
let app;

for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => void (app ? app.kill(signal) : node.kill(signal)));

const listening = new Promise((done) => {
  let said = "";
  node.stdout.on("data", (bytes) => {
    said += bytes;
    if (said.includes(" listens on ")) done("listens");
  });
});
const first = await Promise.race([listening, ended(node), later(START_MS)]);
if (first !== "listens") {
  say("supervisor: the node did not start");
  await stop(node);
  process.exit(1);
}

app = start(words.slice(split + 1), "inherit");
const [who, code] = await Promise.race([
  ended(node).then((code) => ["node", code]),
  ended(app).then((code) => ["app", code]),
]);
say(`supervisor: the ${who} ended with ${code}`);
await stop(app);
await stop(node);
process.exit(who === "node" ? 1 : code);

function say(text) {
  process.stderr.write(`${text}\n`);
}

function start([command, ...args], stdout) {
  const child = spawn(command, args, { stdio: ["ignore", stdout, "inherit"] });
  child.on("error", (error) => say(`supervisor: ${command}: ${error.message}`));
  return child;
}

/** The exit code, or 128 for a signal, as shells say it. */
async function ended(child) {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) await once(child, "exit");
  return child.exitCode ?? 128;
}

/** Asks it to end, and ends it when it does not. */
async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await ended(child);
  clearTimeout(timer);
}

function later(ms) {
  return new Promise((done) => setTimeout(done, ms, "late").unref());
}
