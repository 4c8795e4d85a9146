/** Small helpers of `core`: settings, names, durations, the sealer, errors. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../test/support.ts";
import { parseDuration } from "./durations.ts";
import { CATALOGUE } from "./error-catalogue.ts";
import { ApiError, errorBody } from "./errors.ts";
import { checkSlug, toSlug } from "./names.ts";
import { Sealer } from "./sealer.ts";
import { readSettings } from "./settings.ts";
import { closest } from "./words.ts";

suite("settings", () => {
  test("a flag wins over the environment, the environment over the file, the file over the default", () => {
    const file = join(tempDir(), "hangar.toml");
    writeFileSync(file, 'listen = "127.0.0.1:1"\nlog_level = "warn"\nrate_limit = 5\nlog_levle = "x"\n');
    const env = { HANGAR_CONFIG: file, HANGAR_LISTEN: "127.0.0.1:2" };
    const settings = readSettings(["--listen", "[::1]:3"], env);
    assert.deepEqual(settings.listen, { host: "::1", port: 3 });
    assert.equal(readSettings([], env).listen.port, 2);
    assert.equal(readSettings([], { HANGAR_CONFIG: file }).listen.port, 1);
    assert.equal(readSettings([], {}).listen.port, 4280);
    assert.deepEqual([settings.log_level, settings.rate_limit], ["warn", 5]);
    assert.match(settings.warnings[0] ?? "", /log_levle is not a setting; did you mean log_level\?/);
  });

  test("an invalid setting is refused with its source and the allowed values", () => {
    const broken = join(tempDir(), "broken.toml");
    writeFileSync(broken, "listen = \n");
    const cases: [string[], Record<string, string>, RegExp][] = [
      [[], { HANGAR_LISTEN: "nowhere" }, /HANGAR_LISTEN: "nowhere" is not host:port/],
      [["--listen", "h:99999"], {}, /--listen: .* is not host:port/],
      [[], { HANGAR_DRIVER: "docker" }, /driver is one of auto, runc, sim, not "docker"/],
      [[], { HANGAR_DATABASE_URL: "mysql://x" }, /only postgres/],
      [[], { HANGAR_MASTER_KEY: "c2hvcnQ=" }, /base64 of 32 bytes/],
      [[], { HANGAR_BASE_URL: "https://x/path" }, /is not an origin/],
      [[], { HANGAR_RATE_LIMIT: "many" }, /rate_limit is a whole number/],
      [[], { HANGAR_MACHINE_IO_WRITE_IOPS: "1" }, /machine_io_write_iops is 2 or more, or 0 for no limit/],
      [
        [],
        { HANGAR_MACHINE_IO_READ_IOPS: "-1" },
        /HANGAR_MACHINE_IO_READ_IOPS: machine_io_read_iops is a whole number/,
      ],
      [["--lisen", "x"], {}, /Unknown option '--lisen'.*--listen/s],
      [[], { HANGAR_CONFIG: broken }, /config file .*broken\.toml/],
      [[], { HANGAR_CONFIG: "/nowhere.toml" }, /config file \/nowhere\.toml/],
    ];
    for (const [args, env, message] of cases) assert.throws(() => readSettings(args, env), message);
  });

  test("the ACME DNS hook must be the absolute path of an executable file", () => {
    const file = join(tempDir(), "hook");
    const hook = (path: string) => readSettings(["--acme-dns-hook", path], {}).proxy.acme_dns_hook;
    assert.throws(() => hook("hook"), /--acme-dns-hook: "hook" is not an absolute path of a program/);
    assert.throws(() => hook(file), /is not a file/);
    writeFileSync(file, "#!/bin/sh\n", { mode: 0o644 });
    assert.throws(() => hook(file), /cannot be executed: chmod \+x/);
    chmodSync(file, 0o755);
    assert.equal(hook(file), file);
    assert.equal(readSettings([], {}).proxy.acme_dns_hook, undefined);
  });
});

suite("durations, suggestions and slugs", () => {
  test("durations are parsed in human and in Go notation", () => {
    assert.deepEqual(
      ["90s", "1h30m", "30d", "1.5h", "250ms", "1y"].map(parseDuration),
      [90_000, 5_400_000, 2_592_000_000, 5_400_000, 250, 31_557_600_000],
    );
    assert.deepEqual(["", "5", "1 h", "h", "-1s", "1h2"].map(parseDuration), Array(6).fill(undefined));
  });

  test("closest() suggests the nearest known name, or nothing", () => {
    assert.equal(closest("maschines", ["machines", "volumes"]), "machines");
    assert.equal(closest("zzz", ["machines", "volumes"]), undefined);
  });

  test("slugs reject characters that could split a host name, a path or a token's subject", () => {
    for (const good of ["a", "a1", "my-app", "a".repeat(63)]) checkSlug(good, "x");
    for (const bad of ["", "-", "a-", "A", "a:b", "a/b", "a.b", "a*", "a".repeat(64), "a\n", "ａ"]) {
      assert.throws(() => checkSlug(bad, "x"), { code: "invalid_name" }, bad);
    }
    assert.deepEqual(["Acme & Co", "Ünïcode", "***", "a".repeat(80)].map(toSlug), [
      "acme-co",
      "u-ni-code",
      "",
      "a".repeat(63),
    ]);
  });
});

suite("sealer", () => {
  test("the sealer opens a value only with its key, in its context, and unmodified", () => {
    const sealer = new Sealer(randomBytes(32));
    const sealed = sealer.seal("here", "secret");
    assert.equal(sealer.open("here", sealed).toString(), "secret");
    assert.notDeepEqual(sealer.seal("here", "secret"), sealed);
    assert.throws(() => sealer.open("there", sealed));
    assert.throws(() => new Sealer(randomBytes(32)).open("here", sealed));
    for (let i = 0; i < sealed.length; i++) {
      const changed = Buffer.from(sealed);
      changed.writeUInt8(changed.readUInt8(i) ^ 1, i);
      assert.throws(() => sealer.open("here", changed), `byte ${i}`);
    }
    assert.throws(() => sealer.open("here", sealed.subarray(0, 10)));
    assert.throws(() => new Sealer(randomBytes(16)), /32 bytes/);
  });
});

suite("errors", () => {
  test("an API error carries message, code and hint to the client, and nothing of its cause", () => {
    const error = new ApiError("name_taken", "taken", { hint: "another", cause: new Error("internal detail") });
    const body = errorBody(error, "01REQUEST");
    assert.deepEqual(body, {
      error: "taken",
      status: "name_taken",
      retryable: false,
      request_id: "01REQUEST",
      hint: "another",
    });
    assert.equal(error.http, 422);
  });

  test("error codes are snake_case and their HTTP statuses are 4xx or 5xx", () => {
    for (const [code, { http }] of Object.entries(CATALOGUE)) {
      assert.match(code, /^[a-z]+(_[a-z]+)*$/);
      assert.ok(http >= 400 && http < 600);
    }
  });
});
