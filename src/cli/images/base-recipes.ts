/** Base images made of Debian's packages: which packages, and what a machine of them runs. */

export interface BaseRecipe {
  summary: string;
  packages: readonly string[];
  /** Files that packages are to find when they are installed, and those that the image gets beside them. */
  before?: Readonly<Record<string, string>>;
  files?: Readonly<Record<string, string>>;
  /** Shell lines that are run on the finished root file system; `$1` is its folder. */
  hooks?: readonly string[];
  config: {
    Cmd?: readonly string[];
    Entrypoint?: readonly string[];
    Env?: readonly string[];
    StopSignal?: string;
    WorkingDir?: string;
    ExposedPorts?: Readonly<Record<string, object>>;
  };
}

const POSTGRES_PORT = 5432;
/** Where the volume of a database is mounted. */
const POSTGRES_VOLUME = "/data";

/**
 * Runs PostgreSQL on a volume. The cluster is made beside its place and renamed into it, so that a crash in the middle
 * leaves nothing that looks like one. The key of its certificate is made here, not in the image, so that no two share it.
 */
const START_POSTGRES = `#!/bin/sh
set -eu
data="\${PGDATA:-${POSTGRES_VOLUME}/postgres}"
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$(dirname "$data")" /run/postgresql
  chown postgres:postgres "$(dirname "$data")" /run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
programs=$(echo /usr/lib/postgresql/*/bin)
if [ ! -e "$data" ]; then
  : "\${POSTGRES_PASSWORD:?is not set: hangar secrets set POSTGRES_PASSWORD=...}"
  rm -rf "$data.new"
  password=/run/postgresql/.password
  umask 077
  printf '%s\\n' "$POSTGRES_PASSWORD" > "$password"
  "$programs/initdb" -D "$data.new" -U postgres --pwfile="$password" --auth-local=peer --auth-host=scram-sha-256 \\
    --encoding=UTF8 --locale=C.UTF-8 --data-checksums
  rm "$password"
  openssl req -new -x509 -days 3650 -nodes -subj "/CN=\${SVC_APP_NAME:-postgres}" \\
    -out "$data.new/server.crt" -keyout "$data.new/server.key" 2>/dev/null
  chmod 600 "$data.new/server.key"
  echo 'host all all all scram-sha-256' >> "$data.new/pg_hba.conf"
  cat >> "$data.new/postgresql.conf" <<CONF
listen_addresses = '*'
unix_socket_directories = '/run/postgresql'
ssl = on
CONF
  sync
  mv "$data.new" "$data"
fi
have=$(cat "$data/PG_VERSION")
need=$("$programs/postgres" -V | sed 's/[^0-9]*\\([0-9]*\\).*/\\1/')
if [ "$have" != "$need" ]; then
  echo "the data is of PostgreSQL $have, this image has $need: restore a dump (pg_dumpall) into a new database" >&2
  exit 1
fi
exec "$programs/postgres" -D "$data" "$@"
`;

export const BASES: Readonly<Record<string, BaseRecipe>> = {
  debian: {
    summary: "Debian with certificates of public authorities",
    packages: ["ca-certificates"],
    config: { Cmd: ["bash"] },
  },
  node: {
    summary: "Debian's Node.js and npm",
    packages: ["ca-certificates", "nodejs", "npm"],
    config: { Cmd: ["node"], Env: ["NODE_ENV=production"] },
  },
  python: {
    summary: "Debian's Python 3 with pip and venv",
    packages: ["ca-certificates", "python3", "python3-pip", "python3-venv"],
    // Debian keeps pip from its own packages; in an image there is nobody to disturb.
    config: { Cmd: ["python3"], Env: ["PYTHONUNBUFFERED=1", "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_NO_CACHE_DIR=1"] },
  },
  postgres: {
    summary: "Debian's PostgreSQL, its data in /data, its password POSTGRES_PASSWORD",
    packages: ["postgresql"],
    // The package would make a database, and a key, that every machine of the image shares.
    before: { "/etc/postgresql-common/createcluster.conf": "create_main_cluster = false\n" },
    files: { "/usr/local/bin/start-postgres": START_POSTGRES },
    hooks: ['rm -f "$1"/etc/ssl/private/ssl-cert-snakeoil.key "$1"/etc/ssl/certs/ssl-cert-snakeoil.pem'],
    config: {
      Entrypoint: ["/usr/local/bin/start-postgres"],
      // A fast shutdown: open transactions are rolled back, nothing has to be recovered at the next start.
      StopSignal: "SIGINT",
      ExposedPorts: { [`${POSTGRES_PORT}/tcp`]: {} },
    },
  },
};
