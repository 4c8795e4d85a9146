/** `hangar service`: the platform as a systemd service. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ClientError } from "#client/client.ts";
import { forgetRemoved } from "#core/host-claims.ts";
import { facts } from "../output.ts";
import { projectRoot } from "../project-root.ts";
import { type Context, type Input, textOption, UsageError, type Verb } from "../verb.ts";
import { FIRST_CONFIG, installedDataDir, SERVICE, unitFile } from "./service-unit.ts";

export const serviceInstall: Verb = {
  words: "service install",
  summary: "Run the platform as a systemd service: now, after a crash and after a reboot",
  examples: ["hangar service install", "hangar service install --data-dir /srv/hangar"],
  async run({ say }, input) {
    needSystemd();
    const data_dir = dataDirFor(input);
    const root = projectRoot();
    bringPackages(root, say);
    const changed = existsSync(SERVICE.packaged_unit_file)
      ? refuseOther(data_dir)
      : writeChanged(SERVICE.unit_file, unitFile(unitParts(root, data_dir)));
    mkdirSync(SERVICE.config_dir, { recursive: true, mode: 0o755 });
    if (!existsSync(SERVICE.config_file)) writeFileSync(SERVICE.config_file, FIRST_CONFIG, { mode: 0o600 });
    mkdirSync(data_dir, { recursive: true, mode: 0o700 });
    systemctl("daemon-reload");
    systemctl("enable", "--quiet", SERVICE.unit);
    say(`starting ${SERVICE.unit} …`);
    // Restarts even when the unit is unchanged: the program may have been upgraded.
    systemctl("restart", SERVICE.unit);
    const text = `The platform runs as ${SERVICE.unit}, with its data in ${data_dir} and its settings in ${SERVICE.config_file}.\nSee: hangar service status, journalctl -u hangar`;
    return { data: { unit: SERVICE.unit, data_dir, changed }, text };
  },
};

export const serviceUninstall: Verb = {
  words: "service uninstall",
  summary: "Stop the service and its machines; remove the unit, the settings and the data",
  options: [
    ["--keep-data", "keep the data dir and the settings: disks of machines, volumes, the database"],
    ["--yes", "also delete the data dir (required unless --keep-data)"],
  ],
  examples: ["hangar service uninstall --keep-data", "hangar service uninstall --yes"],
  async run({ runProgram }, input) {
    needSystemd();
    const data_dir = dataDirFor(input);
    const keep = input.options["keepData"] === true;
    if (!keep && input.options["yes"] !== true)
      throw new UsageError(
        `this would delete ${data_dir} with every machine's disk, volume and secret; add --yes to do so, or --keep-data to keep it`,
      );
    if (existsSync(SERVICE.packaged_unit_file))
      throw new UsageError(
        `${SERVICE.unit} belongs to the Debian package: apt-get ${keep ? "remove" : "purge"} hangar`,
      );
    systemctl("disable", "--quiet", "--now", SERVICE.unit);
    const { exit, text } = await runProgram("main.ts", ["down", "--data-dir", data_dir], "quiet");
    if (exit !== 0) return { data: { ok: false }, text: `the machines could not be stopped: ${text}`, exit };
    rmSync(SERVICE.unit_file, { force: true });
    systemctl("daemon-reload");
    if (!keep) {
      refuseMounted(data_dir);
      for (const folder of [data_dir, SERVICE.config_dir, SERVICE.cache_dir])
        rmSync(folder, { recursive: true, force: true });
      forgetRemoved();
    }
    const kept = keep
      ? ` Its data stays in ${data_dir}, its settings in ${SERVICE.config_dir}.`
      : " Nothing of it is left.";
    return { data: { ok: true, kept: keep }, text: `${text}\nThe service is removed.${kept}` };
  },
};

/** Properties of `systemctl show`, with their labels. */
const SHOWN = {
  ActiveState: "state",
  SubState: "detail",
  UnitFileState: "at boot",
  MainPID: "pid",
  NRestarts: "restarts",
  ActiveEnterTimestamp: "since",
  StatusText: "says",
  Result: "last result",
  FragmentPath: "unit",
} as const;

/** The exit code of `systemctl status`. */
const NOT_RUNNING = 3;

export const serviceStatus: Verb = {
  words: "service status",
  summary: "Show the state of the service, its start time and its restarts",
  examples: ["hangar service status"],
  async run(context, input) {
    needSystemd({ root: false });
    const shown = systemctl("show", SERVICE.unit, `--property=${Object.keys(SHOWN).join(",")}`);
    const values = Object.fromEntries(
      shown.split("\n").map((line): [string, string] => [line.split("=")[0] ?? "", line.replace(/^[^=]*=/, "")]),
    );
    if (!values["FragmentPath"]) {
      const text = `${SERVICE.unit} is not installed; run hangar service install.`;
      return { data: { installed: false }, text, exit: NOT_RUNNING };
    }
    const data_dir = dataDirFor(input);
    const rows = Object.entries(SHOWN).map(([key, name]): [string, string] => [name, values[key] || "-"]);
    const data = {
      installed: true,
      data_dir,
      ...Object.fromEntries(rows.map(([k, v]) => [k.replaceAll(" ", "_"), v])),
    };
    const text = facts([...rows, ["data dir", data_dir], ["API", await answer(context)]]);
    return { data, text, exit: values["ActiveState"] === "active" ? 0 : NOT_RUNNING };
  },
};

async function answer({ client }: Context): Promise<string> {
  return await client.call("GET /readyz", {}).then(
    ({ version }) => `ready: answers at ${client.base_url}, version ${version}`,
    (thrown: unknown) =>
      thrown instanceof ClientError && thrown.http !== 0 ? thrown.message : `does not respond at ${client.base_url}`,
  );
}

function needSystemd({ root = true } = {}): void {
  if (!existsSync("/run/systemd/system"))
    throw new UsageError("this system does not use systemd; run `hangar up` under its service manager");
  if (root && process.getuid?.() !== 0) throw new UsageError("this changes the system: run it as root, with sudo");
}

/** The data dir of this command line, else the installed service's, else the default; never the current directory. */
function dataDirFor(input: Input): string {
  const given = textOption(input, "dataDir");
  const data_dir = given === undefined ? installedDataDir() : resolve(given);
  if (/\p{Cc}/u.test(data_dir)) throw new UsageError("--data-dir has a control character in its path");
  if (data_dir === "/") throw new UsageError("--data-dir is a folder for Hangar alone, not /");
  return data_dir;
}

function refuseOther(data_dir: string): false {
  if (data_dir === SERVICE.data_dir) return false;
  throw new UsageError(
    `the Debian package has its data in ${SERVICE.data_dir}; to have it on another disk, mount that there`,
  );
}

/** Deleting through a mount would delete what is mounted. */
function refuseMounted(data_dir: string): void {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const below = mounts.map((line) => line.split(" ")[4] ?? "").find((at) => at.startsWith(`${data_dir}/`));
  if (below) throw new UsageError(`${below} is still mounted; unmount it and run this again`);
}

function unitParts(root: string, data_dir: string) {
  const pinned = join(root, `node_modules/node-linux-${process.arch}/bin/node`);
  const node = existsSync(pinned) ? pinned : process.execPath;
  if (/["'\\*?[\]]/.test(node))
    throw new UsageError(`systemd starts no program whose path has quotes, \\, *, ? or brackets: ${node}; move Hangar`);
  return {
    node,
    program: join(root, "src/main.ts"),
    data_dir,
  };
}

/** A checkout installs its packages, as `npm start` does; a package has dependencies, or `hangar doctor` lists them. */
function bringPackages(root: string, say: Context["say"]): void {
  const bootstrap = join(root, "scripts/bootstrap.mjs");
  if (!existsSync(bootstrap)) return;
  say("checking for missing packages …");
  const { status } = spawnSync(process.execPath, [bootstrap], { stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new UsageError("the packages that Hangar needs could not be installed; see above");
}

function writeChanged(file: string, text: string): boolean {
  if (existsSync(file) && readFileSync(file, "utf8") === text) return false;
  writeFileSync(file, text, { mode: 0o644 });
  return true;
}

function systemctl(...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync("systemctl", args, { encoding: "utf8" });
  if (status === 0) return stdout;
  throw new UsageError(`systemctl ${args.join(" ")} failed: ${(error?.message ?? stderr).trim()}`);
}
