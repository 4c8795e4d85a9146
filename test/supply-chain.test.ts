/** Dependencies: pinned with their hashes, under licences that are allowed, listed in a bill of materials. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { judgeAudit } from "../scripts/supply-chain/audit.ts";
import { licenceList, refusedLicences } from "../scripts/supply-chain/licences.ts";
import { type LockedPackage, type LockFile, packagesOf, readLock, root } from "../scripts/supply-chain/lock-file.ts";
import { type Bom, sbomOf } from "../scripts/supply-chain/sbom.ts";

const EXACT = /^\d+\.\d+\.\d+(-[\w.]+)?$/;
const SHA512 = /^sha512-[A-Za-z0-9+/]{86}==$/;

/** What is wrong with a lock file, in words. */
const lockProblems = (lock: LockFile): string[] =>
  packagesOf(lock).flatMap(({ at, version, integrity = "", resolved }) => [
    ...(SHA512.test(integrity) ? [] : [`${at} has no SHA-512 hash`]),
    ...(EXACT.test(version) ? [] : [`${at} has the version ${version}`]),
    ...(resolved === undefined ? [] : [`${at} names a host: ${resolved}`]),
  ]);

suite("dependencies", () => {
  test("every package in the lock file has one version and a hash, and no registry host", () => {
    const text = readFileSync(join(root, "package-lock.json"), "utf8");
    assert.deepEqual(lockProblems(readLock()), []);
    assert.doesNotMatch(text, /\.tgz"/);
    assert.doesNotMatch(text, /"resolved"/);
  });

  test("control: an entry without hash, with a range or with a host is found", () => {
    const lock = readLock();
    const bad = { version: "^1.0.0", resolved: "https://registry.example/a.tgz" };
    assert.equal(
      lockProblems({ ...lock, packages: { "": lock.packages[""] ?? bad, "node_modules/a": bad } }).length,
      3,
    );
  });

  test("package files name exact versions", () => {
    const files = ["package.json", "tools/package.json", "tools/mutate/package.json", "tools/runners/package.json"];
    const loose = files.flatMap((file) => {
      const found = JSON.parse(readFileSync(join(root, file), "utf8")) as Record<string, Record<string, string>>;
      const kinds = ["dependencies", "devDependencies", "optionalDependencies"];
      return kinds.flatMap((kind) =>
        Object.entries(found[kind] ?? {}).flatMap(([name, version]) =>
          EXACT.test(version) ? [] : [`${file}: ${name} ${version}`],
        ),
      );
    });
    assert.deepEqual(loose, []);
  });

  test("all licences are allowed; an unknown or missing one is refused", () => {
    const packages = packagesOf(readLock());
    assert.deepEqual(refusedLicences(packages), []);
    assert.match(licenceList(packages), /^MIT \(\d+\): .*fastify /m);
    const one: LockedPackage = { name: "x", at: "node_modules/x", version: "1.0.0", license: "MPL-2.0" };
    assert.deepEqual(refusedLicences([{ ...one, dev: true }]), []);
    assert.match(refusedLicences([one])[0] ?? "", /^x 1\.0\.0 has the licence MPL-2\.0; allowed to be passed on: /);
    const refused = (license: string): number => refusedLicences([{ ...one, license }]).length;
    assert.deepEqual(["(BSD-3-Clause OR GPL-2.0)", "(GPL-2.0 OR MIT)"].map(refused), [0, 0], "one may choose");
    const all = ["(MIT AND GPL-2.0)", "(GPL-2.0 OR AGPL-3.0)", "(MIT AND GPL-2.0 OR GPL-3.0)", "MIT OR GPL-2.0 WITH x"];
    assert.deepEqual(all.map(refused), [1, 1, 1, 1]);
    const { license: _, ...without } = one;
    assert.match(refusedLicences([without])[0] ?? "", /names no licence/);
  });
});

suite("npm audit", () => {
  const found = (severity: string) =>
    JSON.stringify({
      vulnerabilities: { x: { severity, range: "<2", via: [{ title: "a hole", url: "https://example.org/1" }] } },
      metadata: { vulnerabilities: { [severity]: 1 } },
    });

  test("the audit fails for a high or critical vulnerability, and names it", () => {
    for (const severity of ["high", "critical"]) {
      const { verdict, words } = judgeAudit(found(severity));
      assert.deepEqual([verdict, words], ["vulnerable", `x <2 (${severity}): a hole https://example.org/1`]);
    }
  });

  test("the audit passes for lesser vulnerabilities and for none", () => {
    assert.deepEqual(judgeAudit(found("moderate")).verdict, "clean");
    assert.equal(judgeAudit('{"vulnerabilities":{},"metadata":{"vulnerabilities":{}}}').verdict, "clean");
  });

  test("the audit reports that nothing was checked when the registry does not respond", () => {
    for (const answer of ["", "<html>", "{}", '{"message":"405 Method Not Allowed","error":{"code":"E405"}}', "null"]) {
      const { verdict, words } = judgeAudit(answer);
      assert.equal(verdict, "not answered", answer);
      assert.match(words, /they were not checked/);
    }
  });
});

/** One licence by its identifier, or several as an expression: never an expression as an identifier. */
const isLicence = (one: { license: { id: string } } | { expression: string }): boolean =>
  "license" in one ? /^[\w.-]+$/.test(one.license.id) : /^\([\w.-]+( (OR|AND|WITH) [\w.-]+)+\)$/.test(one.expression);

/** The rules of CycloneDX 1.6 for the fields that we use, from its JSON schema and its text. */
function bomProblems(bom: Bom): string[] {
  const refs = [bom.metadata.component, ...bom.components].map((one) => one["bom-ref"]);
  const known = new Set(refs);
  const digits: Record<string, number> = { "SHA-1": 40, "SHA-256": 64, "SHA-384": 96, "SHA-512": 128 };
  const wrong = (text: string, isRight: boolean): string[] => (isRight ? [] : [text]);
  return [
    ...wrong(
      "serialNumber",
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(bom.serialNumber),
    ),
    ...wrong("version", Number.isInteger(bom.version) && bom.version >= 1),
    ...wrong("bom-refs are unique", known.size === refs.length),
    ...bom.components.flatMap(({ name, version, purl, hashes = [], licenses = [] }) => [
      ...wrong(`${name}: purl`, purl === `pkg:npm/${name.replace("@", "%40")}@${version}`),
      ...wrong(
        `${name}: hash`,
        hashes.length === 1 && hashes.every(({ alg, content }) => content.length === digits[alg]),
      ),
      ...wrong(`${name}: licence`, licenses.length === 1 && licenses.every(isLicence)),
    ]),
    ...wrong("each has its dependencies", bom.dependencies.length === refs.length),
    ...bom.dependencies.flatMap(({ ref, dependsOn }) => [
      ...wrong(`${ref} is known`, known.has(ref)),
      ...wrong(
        `what ${ref} needs is known, once`,
        new Set(dependsOn).size === dependsOn.length && dependsOn.every((one) => known.has(one)),
      ),
    ]),
  ];
}

suite("bill of materials", () => {
  const isPassedOn = (name: string): boolean => !/^(node-linux|@esbuild)/.test(name);

  test("the bill of materials is valid CycloneDX and lists exactly the packages that are shipped", () => {
    const bom = sbomOf(readLock(), isPassedOn);
    assert.deepEqual([bom.bomFormat, bom.specVersion], ["CycloneDX", "1.6"]);
    assert.deepEqual(bomProblems(bom), []);
    const passed_on = packagesOf(readLock()).filter(({ dev, name }) => !dev && isPassedOn(name));
    const names = (list: readonly { name: string; version: string }[]): string[] =>
      [...new Set(list.map(({ name, version }) => `${name}@${version}`))].sort();
    assert.deepEqual(names(bom.components), names(passed_on));
  });

  test("the bill of materials is the same for the same lock file", () => {
    assert.equal(JSON.stringify(sbomOf(readLock(), isPassedOn)), JSON.stringify(sbomOf(readLock(), isPassedOn)));
  });

  test("a nested dependency's own version is found before the project's", () => {
    const entry = (version: string, dependencies = {}) => ({
      version,
      integrity: `sha512-${"A".repeat(86)}==`,
      license: "MIT",
      dependencies,
    });
    const lock: LockFile = {
      name: "p",
      version: "1.0.0",
      lockfileVersion: 3,
      packages: {
        "": { version: "1.0.0", dependencies: { a: "1.0.0", b: "1.0.0" } },
        "node_modules/a": entry("1.0.0", { b: "2.0.0" }),
        "node_modules/a/node_modules/b": entry("2.0.0"),
        "node_modules/b": entry("1.0.0"),
      },
    };
    const { dependencies } = sbomOf(lock, () => true);
    assert.deepEqual(dependencies.find(({ ref }) => ref === "pkg:npm/a@1.0.0")?.dependsOn, ["pkg:npm/b@2.0.0"]);
  });
});
