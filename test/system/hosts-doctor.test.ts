/** `hangar doctor` on a box that only runs machines: no API, no token, a PostgreSQL elsewhere. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { HOST_FILES } from "#core/host-status.ts";
import { postgresMissing } from "../postgres.ts";
import { tempDir } from "../support.ts";
import { startProgram } from "./child.ts";
import { startDaemon } from "./daemon.ts";
import { startCluster, until } from "./hosts-support.ts";

interface Finding {
  what: string;
  verdict: string;
  found: string;
  mend?: string;
}

/** As on a box where nothing else is set. */
const onlyThere = (data_dir: string): NodeJS.ProcessEnv => ({
  HANGAR_DATA_DIR: data_dir,
  HANGAR_URL: undefined,
  HANGAR_TOKEN: undefined,
});

async function doctor(t: TestContext, data_dir: string): Promise<(what: string) => Finding | undefined> {
  const child = startProgram(t, "src/cli/main.ts", ["doctor", "--json"], onlyThere(data_dir));
  await child.ended;
  const findings = JSON.parse(child.lines.join("\n")) as Finding[];
  return (name) => findings.find(({ what }) => what === name);
}

suite("hangar doctor on a host", { skip: postgresMissing() }, () => {
  test("names the host, and says what it has, what is missing, and that it does not run", async (t) => {
    const { controls, hosts, postgres } = await startCluster(t, { controls: 1, hosts: 1 });
    const [control] = controls;
    const [host] = hosts;
    assert.ok(control && host);
    const data_dir = dirname(host.journal);
    const well = await doctor(t, data_dir);
    assert.equal(well("host")?.found, `this box is host ${host.id}, region local, zone ${host.id}`);
    assert.equal(well("process")?.verdict, "ok");
    for (const part of ["database", "executor", "lease"]) assert.equal(well(part)?.found, "ready", part);
    assert.equal(well("proxy"), undefined, "it has none");
    assert.ok(well("API")?.found.startsWith(control.base_url));
    assert.match(well("address")?.found ?? "", /^127\.0\.0\.1:\d+: only processes on this box reach it/);
    assert.equal(well("platform"), undefined, "no platform is looked for");
    assert.equal(well("objects")?.verdict, "warn");

    const listing = startProgram(t, "src/cli/main.ts", ["machines", "list"], onlyThere(data_dir));
    assert.equal((await listing.ended).code, 2);
    assert.match(listing.complaints, /only runs machines .*Set HANGAR_URL and HANGAR_TOKEN/);

    await postgres.crash();
    const away = await until("the database is missed", async () => {
      const found = await doctor(t, data_dir);
      return found("lease")?.verdict === "fail" && found;
    });
    assert.equal(away("database")?.verdict, "fail");
    assert.match(away("database")?.mend ?? "", /HANGAR_DATABASE_URL/);
    assert.match(away("lease")?.found ?? "", new RegExp(`host ${host.id} holds no lease`));

    await host.child.kill();
    const gone = await doctor(t, data_dir);
    assert.match(gone("process")?.found ?? "", new RegExp(`host ${host.id} does not run`));
    assert.match(gone("process")?.mend ?? "", /--role host|systemctl/);
  });

  test("is as before in the data dir of a control process, also one that a host had before", async (t) => {
    const data_dir = tempDir();
    writeFileSync(join(data_dir, HOST_FILES.place), "{}");
    await startDaemon(t, data_dir, []);
    const found = await doctor(t, data_dir);
    assert.equal(found("host"), undefined);
    assert.equal(found("platform")?.verdict, "ok");
  });
});
