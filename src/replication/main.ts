/** `hangar db node` as a program of its own: arguments in, a running node out. */
import { parseArgs } from "node:util";
import { messageOf } from "#core/assert.ts";
import { isoTime, systemClock } from "#core/clock.ts";
import { type Election, startNode } from "./commands.ts";
import { LEASE_FORMS, openLeases } from "./election/open-leases.ts";
import { backupAt, CREDENTIAL_OPTIONS, credentialsFrom } from "./flags.ts";

const USAGE = `usage: main.ts --dir DIR [--listen 127.0.0.1:20202] [--primary | --join http://host:port | --lease WHERE]
  --dir DIR                the databases are the files in DIR
  --listen HOST:PORT       address of /events and of the other nodes
  --advertise URL          where other nodes reach this one, when that is not the listening address
  --primary                this node is the primary, always
  --join URL               this node follows the node at URL, always
  --lease WHERE            whoever has the lease is primary; WHERE is ${LEASE_FORMS}
  --token-file FILE        the token for a lease of the platform (or HANGAR_TOKEN)
  --no-candidate           with --lease: follow, but never become primary
  --backup WHERE           while primary, copy transactions to a folder or to https://host/bucket[/path]
  --key-file FILE          a key the nodes share (or HANGAR_DB_KEY)
  --identity-issuer URL    instead of a key: machines with tokens of this issuer are nodes
  --identity-subject SUB   … whose subject is this: org:app:machine, or org:app:*
  --identity-jwks URL      … whose keys are here, when the issuer's configuration is not to be asked
  --identity-socket PATH   where this machine gets its own tokens (default: /.svc/api)
  --trust-network          listen anywhere without a key or an identity
`;

const OPTIONS = {
  dir: { type: "string" },
  listen: { type: "string", default: "127.0.0.1:20202" },
  advertise: { type: "string" },
  primary: { type: "boolean" },
  join: { type: "string" },
  lease: { type: "string" },
  "token-file": { type: "string" },
  "no-candidate": { type: "boolean" },
  backup: { type: "string" },
  "trust-network": { type: "boolean", default: false },
  ...CREDENTIAL_OPTIONS,
} as const;

type Flags = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"];

function log(message: string): void {
  process.stdout.write(`${isoTime(systemClock.now())} ${message}\n`);
}

function election(flags: Flags): Election {
  const given = [flags.primary, flags.join, flags.lease].filter((value) => value !== undefined).length;
  if (given > 1) throw new Error("give one of --primary, --join and --lease");
  if (flags.join !== undefined) return { kind: "join", url: new URL(flags.join).origin };
  if (flags.lease === undefined) return { kind: "primary" };
  const leases = openLeases(flags.lease, { clock: systemClock, token_file: flags["token-file"] });
  return { kind: "lease", leases, candidate: flags["no-candidate"] !== true };
}

async function main(): Promise<void> {
  const { values: flags } = parseArgs({ options: OPTIONS });
  const [, host, port] = /^(.*):(\d+)$/.exec(flags.listen) ?? [];
  if (flags.dir === undefined || host === undefined)
    throw new Error(`--dir is needed, --listen is HOST:PORT\n${USAGE}`);
  const credentials = await credentialsFrom(flags);
  const running = await startNode({
    dir: flags.dir,
    host: host.replace(/^\[|\]$/g, ""),
    port: Number(port),
    ...(flags.advertise === undefined ? {} : { advertise: flags.advertise }),
    ...(credentials === undefined ? {} : { credentials }),
    ...(flags.backup === undefined ? {} : { backup: await backupAt(flags.backup, systemClock) }),
    trust_network: flags["trust-network"],
    election: election(flags),
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

main().catch((error: unknown) => {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(2);
});
