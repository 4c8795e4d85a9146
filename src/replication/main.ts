/** `hangar db node` as a program of its own: arguments in, a running node out. */
import { parseArgs } from "node:util";
import { messageOf } from "#core/assert.ts";
import { isoTime, systemClock } from "#core/clock.ts";
import { LocalObjects } from "./backup/local-objects.ts";
import { type Election, startNode } from "./commands.ts";
import { LEASE_FORMS, openLeases } from "./election/open-leases.ts";

const USAGE = `usage: main.ts --dir DIR [--listen 127.0.0.1:20202] [--primary | --join http://host:port | --lease WHERE]
  --dir DIR            the databases are the files in DIR
  --listen HOST:PORT   address of /events and of the other nodes
  --advertise URL      where other nodes reach this one, when that is not the listening address
  --primary            this node is the primary, always
  --join URL           this node follows the node at URL, always
  --lease WHERE        whoever has the lease is primary; WHERE is ${LEASE_FORMS}
  --token-file FILE    the token for a lease of the platform (or HANGAR_TOKEN)
  --no-candidate       with --lease: follow, but never become primary
  --backup DIR         while primary, copy transactions to DIR, for db restore
  --key-file FILE      a key the nodes share (or HANGAR_DB_KEY)
`;

function log(message: string): void {
  process.stdout.write(`${isoTime(systemClock.now())} ${message}\n`);
}

interface ElectionFlags {
  primary?: boolean | undefined;
  join?: string | undefined;
  lease?: string | undefined;
  "token-file"?: string | undefined;
  "no-candidate"?: boolean | undefined;
}

function election(values: ElectionFlags): Election {
  const given = [values.primary, values.join, values.lease].filter((value) => value !== undefined).length;
  if (given > 1) throw new Error("give one of --primary, --join and --lease");
  if (values.join !== undefined) return { kind: "join", url: new URL(values.join).origin };
  if (values.lease === undefined) return { kind: "primary" };
  const leases = openLeases(values.lease, { clock: systemClock, token_file: values["token-file"] });
  return { kind: "lease", leases, candidate: values["no-candidate"] !== true };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      dir: { type: "string" },
      listen: { type: "string", default: "127.0.0.1:20202" },
      advertise: { type: "string" },
      primary: { type: "boolean" },
      join: { type: "string" },
      lease: { type: "string" },
      "token-file": { type: "string" },
      "no-candidate": { type: "boolean" },
      backup: { type: "string" },
      "key-file": { type: "string" },
    },
  });
  const [, host, port] = /^(.*):(\d+)$/.exec(values.listen) ?? [];
  if (values.dir === undefined || host === undefined)
    throw new Error(`--dir is needed, --listen is HOST:PORT\n${USAGE}`);
  const key = await readKey(values["key-file"]);
  const running = await startNode({
    dir: values.dir,
    host: host.replace(/^\[|\]$/g, ""),
    port: Number(port),
    ...(values.advertise === undefined ? {} : { advertise: values.advertise }),
    ...(key === undefined ? {} : { key }),
    ...(values.backup === undefined ? {} : { backup: new LocalObjects(values.backup) }),
    election: election(values),
    clock: systemClock,
    log,
    onFailure: (error) => {
      // What is on the disk is not known any more; the next start finds out.
      log(`stopping: ${messageOf(error)}`);
      process.exit(1);
    },
  });
  log(`node ${running.node.id} listens on ${running.url}`);
  const end = (): void => {
    running.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log(`stopping: ${messageOf(error)}`);
        process.exit(1);
      },
    );
  };
  process.once("SIGTERM", end);
  process.once("SIGINT", end);
}

async function readKey(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return process.env["HANGAR_DB_KEY"];
  const { readFile } = await import("node:fs/promises");
  return (await readFile(file, "utf8")).trim();
}

main().catch((error: unknown) => {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(2);
});
