/**
 * The process around the platform: settings in, a few lines out, signals, exit codes. What the platform is
 * made of stands in platform.ts.
 *
 *   main.ts [settings]                      run in the foreground
 *   main.ts backup FILE [settings]          a consistent copy, while the platform runs or not
 *   main.ts restore FILE [settings]         fill an empty data dir or database from a copy
 *   main.ts replace [settings]              run in place of the platform that runs, without a dropped request
 *   main.ts down [settings]                 end every machine of a platform that does not run; prints a report as JSON
 *   main.ts inventory [settings]            print what the platform has in the kernel, as JSON
 *   main.ts check [settings]                look at the whole database for damage; prints what is wrong as JSON
 */
import { existsSync, readFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { relative } from "node:path";
import { messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import { SettingsError } from "#core/setting-values.ts";
import { readSettings, type Settings } from "#core/settings.ts";
import { VERSION } from "#core/version.ts";
import { claimDataDir, holderOf } from "#stores/data-dir.ts";
import { collectWhenIdle, idleParts } from "#wiring/idle-memory.ts";
import { replaceRunning, yieldWhenAsked } from "#wiring/replace.ts";
import { openServiceManager } from "#wiring/service-manager.ts";
import { runBackup, runCheck, runDown, runInventory, runRestore } from "./maintenance.ts";
import type { Platform } from "./platform.ts";

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const warn = (text: string): void => void process.stderr.write(`hangar: ${text}\n`);

/** How to call the command: in a checkout through npx. */
const COMMAND = existsSync(new URL("../scripts/bootstrap.mjs", import.meta.url)) ? "npx hangar" : "hangar";

/** User and host errors: one line, no stack. */
const PLAIN = new Set(["SettingsError", "DataDirError", "MigrationError", "BackupError", "ApiError"]);

const REPORTS: Record<string, (settings: Settings) => Promise<object>> = {
  down: runDown,
  inventory: runInventory,
  check: runCheck,
};

async function run(): Promise<void> {
  const [verb, file] = process.argv.slice(2);
  if (verb === "backup" || verb === "restore") {
    if (!file || file.startsWith("-")) throw new SettingsError(`${verb} needs the name of a file`);
    const settings = readSettings(process.argv.slice(4), process.env);
    say(verb === "backup" ? await runBackup(settings, file) : await runRestore(settings, file));
    return;
  }
  const report = verb === undefined ? undefined : REPORTS[verb];
  if (report) {
    say(JSON.stringify(await report(readSettings(process.argv.slice(3), process.env))));
    return;
  }
  if (verb === "replace") {
    await serve(readSettings(process.argv.slice(3), process.env), replaceRunning);
    return;
  }
  await serve(readSettings(process.argv.slice(2), process.env));
}

async function serve(settings: Settings, before?: typeof replaceRunning): Promise<void> {
  for (const warning of settings.warnings) say(`warning: ${warning}`);
  // A second start fails before everything is loaded.
  if (!before && holderOf(settings.data_dir) !== undefined) claimDataDir(settings.data_dir).release();
  const manager = openServiceManager({ env: process.env, clock: systemClock, complain: warn });
  // Loaded on demand, because a backup does not need it.
  const { startPlatform } = await import("./platform.ts");
  const replaced = await before?.(settings, say);
  const onWaiting = (reason: string): void => {
    warn(reason);
    manager.waiting(reason);
  };
  const platform = await startPlatform(settings, { onBroken: stopBroken, onWaiting });
  if (replaced) await platform.listening().then(() => replaced.leave());
  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    // A second signal exits at once.
    if (stopping) process.exit(1);
    stopping = true;
    manager.stopping();
    say(`${signal}: stopping; requests in flight may finish`);
    // A hanging database or disk must not prevent the exit. The next start recovers.
    setTimeout(() => {
      warn(`not everything could be closed within ${LIMITS.stop_ms / 1000} s (limit stop_ms); ending all the same`);
      process.exit(1);
    }, LIMITS.stop_ms).unref();
    platform.close().then(
      () => process.exit(0),
      (thrown: unknown) => complain(thrown),
    );
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  yieldWhenAsked(platform, say, () => {
    stopping = true;
    process.off("SIGINT", stop).off("SIGTERM", stop);
  });
  say(banner(platform, await dashboardLink(platform)));
  const problem = async (): Promise<string | undefined> =>
    (await platform.notReady()).map(({ part, reason }) => `${part}: ${reason}`).join("; ") || undefined;
  await untilReady(problem);
  manager.ready(`Hangar ${VERSION}, ${platform.base_url || "a host without an API"}`, platform.alive, problem);
  void collectWhenIdle(idleParts(systemClock), new AbortController().signal);
  // Otherwise written at exit, which a kill skips.
  flushCompileCache();
}

/** Notifies systemd when ready; after a while also when not, with the reason. */
async function untilReady(problem: () => Promise<string | undefined>): Promise<void> {
  const give_up = systemClock.monotonic() + LIMITS.ready_wait_ms;
  while ((await problem()) !== undefined && systemClock.monotonic() < give_up)
    await systemClock.sleep(LIMITS.readiness_kept_ms);
}

/**
 * A one-time sign-in link to the dashboard. Only for a terminal: a service's output is stored and readable by others.
 */
async function dashboardLink({ base_url, token_file, inject }: Platform): Promise<string> {
  if (!process.stdout.isTTY || token_file === "")
    return `${base_url}/  (\`${COMMAND} dashboard\` prints a link that signs you in)`;
  const authorization = `Bearer ${readFileSync(token_file, "utf8").trim()}`;
  const made = await inject({ method: "POST", url: "/v1/tokens/sign_in_codes", headers: { authorization } });
  return `${base_url}/#/sign-in/${made.json<{ code: string }>().code}  (signs you in, once, within 10 minutes)`;
}

function banner(platform: Platform, dashboard: string): string {
  const { base_url, token_file, driver, database, host_ids } = platform;
  if (token_file === "") {
    return [
      `Hangar ${VERSION} is ready as host ${host_ids.join(", ")} (${Math.round(process.uptime() * 1000)} ms).`,
      `  API        ${base_url || "not known yet; start a process with --role control"}`,
      `  Driver     ${driver.name}: ${driver.reason}`,
      `  Database   ${database}`,
    ].join("\n");
  }
  const token = relative(process.cwd(), token_file);
  // A service's output is read elsewhere, so the path is absolute.
  const shown = token.startsWith("..") || process.cwd() === "/" ? token_file : token;
  return [
    `Hangar ${VERSION} is ready (${Math.round(process.uptime() * 1000)} ms).`,
    `  API        ${base_url}  (readable at ${base_url}/docs)`,
    `  Dashboard  ${dashboard}`,
    `  Token      ${shown}  (full access; \`${COMMAND} auth token\` prints it)`,
    `  Driver     ${driver.name}: ${driver.reason}`,
    `  Database   ${database}`,
    "",
    "Try:",
    `  curl -H "Authorization: Bearer $(cat ${shown})" ${base_url}/v1/orgs`,
  ].join("\n");
}

/** After an I/O error memory may differ from the disk. A restart reads what is stored. */
function stopBroken(error: Error): void {
  process.stderr.write(`The store failed (${error.message}); stopping, so that nothing is built on it.\n`);
  // Pending responses may still be sent.
  setTimeout(() => process.exit(1), 1000).unref();
}

function complain(thrown: unknown): never {
  const plain = thrown instanceof Error && PLAIN.has(thrown.name);
  const inUse = (thrown as { code?: string } | null)?.code === "EADDRINUSE";
  const text = plain || !(thrown instanceof Error) ? messageOf(thrown) : (thrown.stack ?? thrown.message);
  const what = inUse ? "the listen address is in use by another program; set HANGAR_LISTEN to another one" : text;
  warn(what);
  process.exit(1);
}

run().catch(complain);
