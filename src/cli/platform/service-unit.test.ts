import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { dataDirIn, unitFile } from "./service-unit.ts";

const missing = spawnSync("systemd-analyze", ["--version"]).status === 0 ? false : "systemd-analyze is not here";
const DATA_DIRS = ["/var/lib/hangar", "/srv/my data", '/srv/"odd"', "/srv/100%h", "/srv/back\\slash", "/srv/$HOME/ü"];

suite("systemd unit", () => {
  test("the unit starts the platform's own process, without a wrapper that would catch signals", () => {
    const unit = unitFile({ node: "/opt/h/node", program: "/opt/h/src/main.js", data_dir: "/var/lib/hangar" });
    assert.match(unit, /^ExecStart=\/opt\/h\/node \/opt\/h\/src\/main\.js$/m);
    assert.match(unit, /^Type=notify$/m);
    assert.match(unit, /^KillMode=mixed$/m);
  });

  for (const data_dir of DATA_DIRS) {
    test(`the data dir ${data_dir} is read back from the unit`, () => {
      assert.equal(dataDirIn(unitFile({ node: "/node", program: "/main.js", data_dir })), data_dir);
    });
  }

  test("systemd-analyze accepts the unit with any path", { skip: missing }, () => {
    const dir = tempDir();
    for (const [at, name] of ["plain", "with space", "100%", 'quote"', "dollar$x"].entries()) {
      const folder = join(dir, name);
      mkdirSync(folder);
      // systemd takes no quote in the path of a program; `hangar service install` says so.
      const node = join(name.includes('"') ? dir : folder, "node");
      writeFileSync(node, "#!/bin/sh\n");
      chmodSync(node, 0o755);
      const file = join(dir, `hangar-${at}.service`);
      writeFileSync(file, unitFile({ node, program: join(folder, "main.js"), data_dir: folder }));
      const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", file], { encoding: "utf8" });
      const said = `${stdout}${stderr}`.split("\n").filter((line) => line.includes(`hangar-${at}`));
      // RestartSteps came with systemd 254; older versions wait the same time before each restart.
      assert.deepEqual(
        said.filter((line) => !/Restart(Steps|MaxDelaySec)/.test(line)),
        [],
      );
    }
  });
});
