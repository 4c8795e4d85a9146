/** Start scripts of base images: servers on a volume, as their own users. */

/** Where the volume of a database is mounted. */
const VOLUME = "/data";

/**
 * Runs PostgreSQL on a volume. The cluster is created in a temporary folder and renamed, so that a crash in between
 * leaves no partial cluster. The key of its certificate is created here, not in the image, so that no two share it.
 */
export const START_POSTGRES = `#!/bin/sh
set -eu
data="\${PGDATA:-${VOLUME}/postgres}"
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
  user="\${POSTGRES_USER:-postgres}"
  database="\${POSTGRES_DB:-$user}"
  # Another superuser has no system account of that name for peer authentication.
  [ "$user" = postgres ] && locally=peer || locally=trust
  "$programs/initdb" -D "$data.new" -U "$user" --pwfile="$password" --auth-local="$locally" --auth-host=scram-sha-256 \\
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
  "$programs/pg_ctl" -D "$data.new" -o "-c listen_addresses=" -w -s start
  sql() { "$programs/psql" -q -v ON_ERROR_STOP=1 -h /run/postgresql -U "$user" "$@"; }
  if [ "$database" != postgres ]; then
    echo 'CREATE DATABASE :"name"' | sql -v name="$database" -d postgres
  fi
  # As images of PostgreSQL do it: what is to be in a new database.
  for file in /docker-entrypoint-initdb.d/*; do
    case "$file" in
      *.sh) PGHOST=/run/postgresql PGUSER="$user" PGDATABASE="$database" sh "$file" ;;
      *.sql) sql -d "$database" -f "$file" ;;
      *.sql.gz) gunzip -c "$file" | sql -d "$database" ;;
    esac
  done
  "$programs/pg_ctl" -D "$data.new" -m fast -w -s stop
  sync
  mv "$data.new" "$data"
fi
have=$(cat "$data/PG_VERSION")
need=$("$programs/postgres" -V | sed 's/[^0-9]*\\([0-9]*\\).*/\\1/')
if [ "$have" != "$need" ]; then
  echo "the data is of PostgreSQL $have, this image has $need: restore a dump (pg_dumpall) into a new database" >&2
  exit 1
fi
[ "\${1:-}" != postgres ] || shift
exec "$programs/postgres" -D "$data" "$@"
`;

/** Runs Redis on a volume; every write is in its log. */
export const START_REDIS = `#!/bin/sh
set -eu
if [ "$(id -u)" = 0 ]; then
  mkdir -p ${VOLUME}
  chown redis:redis ${VOLUME}
  exec setpriv --reuid=redis --regid=redis --init-groups "$0" "$@"
fi
case "\${1:-}" in redis-server) shift ;; esac
set -- --dir ${VOLUME} --appendonly yes --protected-mode no --bind '*' '-::*' "$@"
if [ -n "\${REDIS_PASSWORD:-}" ]; then set -- "$@" --requirepass "$REDIS_PASSWORD"; fi
exec redis-server "$@"
`;
