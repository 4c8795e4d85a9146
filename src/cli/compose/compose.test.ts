import assert from "node:assert/strict";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { folderOf } from "../../../test/support.ts";
import { type Group, groupsOf } from "../app-file/groups.ts";
import { parseAppFile } from "../app-file/read.ts";
import { inProject, withCompose } from "./app-file.ts";
import { interpolate } from "./interpolate.ts";

function composed(files: Record<string, string>, toml = "[compose]\n") {
  const folder = folderOf({ ...files, "hangar.toml": toml });
  const { file, secrets } = withCompose(parseAppFile(toml, join(folder, "hangar.toml")));
  const groups = groupsOf(file, "").map((group) => inProject(group, "shop"));
  const by_name = Object.fromEntries(groups.map((group): [string, Group] => [group.name, group]));
  return { folder, file, secrets, groups, by_name, notes: file.warnings };
}

/** As a web framework's own guide has it: a web server, a worker of the same code, a database, a queue, a migration. */
const SHOP = `
name: shop
x-app: &app
  build:
    context: ./app
    args: { VERSION: "\${VERSION:-1}" }
  environment: &env
    DATABASE_URL: postgres://shop:\${DB_PASSWORD:?set it}@db:5432/shop
    DEBUG: "false"
services:
  worker:
    <<: *app
    command: python worker.py --queue "a b"
    environment:
      <<: *env
      QUEUE: emails
    depends_on: [db, redis]
    restart: unless-stopped
  web:
    <<: *app
    ports: ["8080:8000", "127.0.0.1:9229:9229"]
    env_file: [.env.web, { path: missing.env, required: false }]
    volumes: ["./app:/app", "uploads:/srv/uploads", "cache:/cache"]
    secrets: [api_key]
    configs: [{ source: motd, target: /etc/motd }]
    healthcheck:
      test: ["CMD", "curl", "-fsS", "http://localhost:8000/up?full=1"]
      interval: 5s
      start_period: 20s
    depends_on:
      db: { condition: service_healthy }
      migrate: { condition: service_completed_successfully }
    deploy: { resources: { limits: { memory: 300M, cpus: "1.5" } }, replicas: 2 }
  migrate:
    <<: *app
    command: ["python", "manage.py", "migrate"]
    depends_on: { db: { condition: service_healthy } }
  db:
    image: postgres:16
    environment: [POSTGRES_USER=shop, POSTGRES_PASSWORD, "POSTGRES_DB=shop"]
    volumes:
      - { type: volume, source: db-data, target: /var/lib/postgresql/data }
      - ./init.sql:/docker-entrypoint-initdb.d/init.sql:ro
      - ./scripts:/scripts
    ports: ["5432:5432"]
    healthcheck: { test: "pg_isready -U shop", interval: 2s, timeout: 1s }
    stop_grace_period: 30s
    stop_signal: SIGINT
    shm_size: 128m
  redis:
    image: redis:7
    healthcheck: { test: ["CMD-SHELL", "redis-cli -p 6380 ping | grep PONG"] }
    expose: ["6380"]
    restart: on-failure:3
  mail:
    image: mailpit
    profiles: [dev]
volumes: { db-data: , uploads: , cache: }
secrets: { api_key: { file: ./api_key.txt } }
configs: { motd: { content: "hello \${VERSION:-1}" } }
`;

const SHOP_FILES = {
  "compose.yaml": SHOP,
  ".env": "DB_PASSWORD=s3cret\nPOSTGRES_PASSWORD='s3cret'\n# a comment\nVERSION=\n",
  ".env.web": "export MODE=web\nDEBUG=overridden\n",
  "api_key.txt": "k",
  "app/Dockerfile": "FROM x",
  "init.sql": "SELECT 1;",
  "scripts/backup.sh": "#!/bin/sh",
};

suite("a compose file", () => {
  test("services become process groups in the order in which they depend on each other", () => {
    const { groups, by_name } = composed(SHOP_FILES);
    assert.deepEqual(
      groups.map(({ name, once }) => (once ? `${name}, once` : name)),
      ["db", "redis", "worker", "migrate, once", "web"],
    );
    assert.deepEqual(by_name["worker"]?.config, {
      image: "",
      metadata: { fly_process_group: "worker" },
      env: { DATABASE_URL: "postgres://shop:s3cret@db:5432/shop", DEBUG: "false", QUEUE: "emails" },
      init: { cmd: ["python", "worker.py", "--queue", "a b"] },
      restart: { policy: "always" },
      dns: { searches: ["process.shop.internal"] },
    });
    assert.deepEqual(by_name["redis"]?.config.restart, { policy: "on-failure", max_retries: 3 });
  });

  test("ports, checks, limits, files and volumes keep their meaning", () => {
    const { by_name, secrets, folder } = composed(SHOP_FILES);
    const { config: web, mount } = by_name["web"] as Group;
    assert.deepEqual(web.services, [
      { protocol: "tcp", internal_port: 8000, ports: [{ port: 8080, handlers: ["http"] }] },
    ]);
    assert.deepEqual(web.checks, {
      web: { type: "http", port: 8000, path: "/up?full=1", interval: "5s", timeout: "5s", grace_period: "20s" },
    });
    assert.deepEqual(web.guest, { memory_mb: 512, cpus: 2 });
    assert.deepEqual(web.env, { MODE: "web", DEBUG: "false", DATABASE_URL: "postgres://shop:s3cret@db:5432/shop" });
    assert.deepEqual(web.files, [
      { guest_path: "/etc/motd", raw_value: Buffer.from("hello 1").toString("base64") },
      { guest_path: "/run/secrets/api_key", secret_name: "FILE_API_KEY" },
    ]);
    assert.deepEqual(secrets, { FILE_API_KEY: Buffer.from("k").toString("base64") });
    assert.deepEqual([mount?.volume_name, mount?.rest.path], ["uploads", "/srv/uploads"]);
    const { config: db, mount: data } = by_name["db"] as Group;
    assert.deepEqual(db.env, { POSTGRES_USER: "shop", POSTGRES_PASSWORD: "s3cret", POSTGRES_DB: "shop" });
    assert.deepEqual(db.checks, { db: { type: "tcp", port: 5432, interval: "2s", timeout: "1s" } });
    assert.deepEqual(db.stop_config, { signal: "SIGINT", timeout: "30s" });
    assert.deepEqual(data?.volume_name, "db_data");
    assert.deepEqual(
      db.files?.map(({ guest_path }) => guest_path),
      ["/docker-entrypoint-initdb.d/init.sql", "/scripts/backup.sh"],
    );
    assert.equal(db.services, undefined);
    chmodSync(join(folder, "scripts/backup.sh"), 0o755);
    const again = withCompose(parseAppFile("[compose]\n", join(folder, "hangar.toml")));
    assert.deepEqual(groupsOf(again.file, "")[0]?.config.files?.[1]?.mode, 0o755);
    assert.deepEqual(by_name["redis"]?.config.checks?.["redis"]?.port, 6380);
  });

  test("what cannot be carried over is said with the reason", () => {
    const { notes } = composed(SHOP_FILES);
    const expected = [
      /^web: port 9229 is not published: it is for 127\.0\.0\.1 only; `hangar proxy 9229:9229` reaches it$/,
      /^db: port 5432 is not published: it is a port of PostgreSQL/,
      /^web: \.\/app is not mounted: the image holds the code/,
      /^web: \/cache is on the machine's own disk, .* a machine has one volume, and that is uploads$/,
      /^web: it begins with one machine; `hangar scale web=2`/,
      /^db: shm_size is left out$/,
      /^mail: left out, its profile is dev/,
      /^db: \.\/init\.sql is copied to/,
    ];
    for (const one of expected)
      assert(
        notes.some((note) => one.test(note)),
        `${one} in\n${notes.join("\n")}`,
      );
    const all = composed(SHOP_FILES, '[compose]\nprofiles = ["dev"]\n');
    assert(all.by_name["mail"]);
  });

  test("sections of hangar.toml win over the compose file", () => {
    const toml = `[compose]
file = "compose.yaml"
[processes.db]
image = "hangar/postgres:bookworm"
env = { PGDATA = "/data" }
[processes.nightly]
image = "hangar/postgres:bookworm"
command = "true"
schedule = "daily"
[[vm]]
memory = "1gb"
processes = ["web"]
`;
    const { by_name } = composed(SHOP_FILES, toml);
    assert.equal(by_name["db"]?.config.image, "hangar/postgres:bookworm");
    assert.deepEqual(by_name["db"]?.config.env?.["PGDATA"], "/data");
    assert.equal(by_name["db"]?.config.env?.["POSTGRES_USER"], "shop");
    assert.deepEqual(by_name["web"]?.config.guest, { memory_mb: 1024 });
    assert.deepEqual(
      [by_name["nightly"]?.config.schedule, by_name["nightly"]?.config.restart],
      ["daily", { policy: "no" }],
    );
  });

  test("a file that cannot be used is refused with its place and the reason", () => {
    const refused: [text: string, expected: RegExp][] = [
      ["services: [", /compose\.yaml cannot be read: .*line 1/s],
      ["services: {}", /has no services/],
      ["a", /holds no table/],
      ["services: { a: {} }", /services\.a has neither image nor build/],
      ["services: { a: { image: x, depends_on: [b] } }", /depends_on names b, which is no service/],
      ["services: { a: { image: x, depends_on: [b] }, b: { image: x, depends_on: [a] } }", /in a circle: a -> b -> a/],
      ["services: { a: { image: x, ports: ['eighty'] } }", /services\.a\.ports: eighty is no port/],
      ["services: { a: { image: x, ports: ['1-3:80'] } }", /3 ports outside and 1 inside/],
      [
        "services: { a: { image: '$TAG{TAG:?no tag}' } }".replace("$TAG", "$"),
        /services\.a\.image: TAG is not set: no tag/,
      ],
      ["services: { a: { image: x, secrets: [k] } }", /secrets: k is not among the secrets/],
      ["services: { a: { image: x, env_file: gone } }", /env_file: there is no file .*gone/],
      ["services: { a: { image: x, restart: maybe } }", /restart is maybe/],
      ["include: [b.yaml]\nservices: {}", /include is not read; `docker compose config`/],
      ["services: { 'a b': { image: x } }", /a b is no name of a service/],
      [
        `a: &a [x,x]\n${Array.from("bcdefghij", (key, at) => `${key}: &${key} [${`*${"abcdefghij"[at]},`.repeat(9)}]`).join("\n")}`,
        /cannot be read: Excessive alias count/,
      ],
    ];
    for (const [text, expected] of refused) assert.throws(() => composed({ "compose.yaml": text }), expected, text);
  });

  test("variables are replaced as Compose's own documentation says", () => {
    const variables = { SET: "s", EMPTY: "" };
    // Written as %NAME, because a lint rule takes the usual form for a template.
    const expected: [text: string, made: string][] = [
      ["$SET-%{SET}", "s-s"],
      ["%{GONE:-a}%{EMPTY:-b}%{EMPTY-c}%{GONE-d}", "abd"],
      ["%{SET:+e}%{EMPTY:+f}%{EMPTY+g}%{GONE+h}", "eg"],
      ["%{GONE:-%{SET}-%{OTHER:-x}}", "s-x"],
      ["$$SET $%{SET}", "$SET %{SET}"],
      ["[$GONE]", "[]"],
    ];
    const usual = (text: string): string => text.replaceAll("%{", "$\u007b");
    for (const [text, made] of expected) assert.equal(interpolate(usual(text), variables, "x"), usual(made), text);
    assert.throws(() => interpolate(usual("%{SET"), variables, "f"), /f: a variable is never closed/);
    assert.throws(() => interpolate("5$", variables, "f"), /write \$\$ for a dollar sign/);
  });
});
