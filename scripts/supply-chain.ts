/** npm run supply-chain: lists the licences of shipped packages, and queries the registry for known vulnerabilities. */
import { spawnSync } from "node:child_process";
import { judgeAudit } from "./supply-chain/audit.ts";
import { licenceList, refusedLicences } from "./supply-chain/licences.ts";
import { packagesOf, readLock, root } from "./supply-chain/lock-file.ts";

const AUDIT_MS = 60_000;
const say = (text: string): void => void process.stdout.write(`${text}\n`);

const packages = packagesOf(readLock());
say(`Licences of what is passed on:\n${licenceList(packages)}`);
const refused = refusedLicences(packages);
for (const problem of refused) say(`FAIL ${problem}`);

// What is installed for development is not passed on.
const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json"], {
  cwd: root,
  encoding: "utf8",
  timeout: AUDIT_MS,
});
const { verdict, words } = judgeAudit(stdout ?? "");
say(`${verdict === "vulnerable" ? "FAIL" : verdict === "clean" ? "ok  " : "SKIP"} audit: ${words}`);
process.exitCode = refused.length > 0 || verdict === "vulnerable" ? 1 : 0;
