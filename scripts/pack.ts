/**
 * npm run pack: Hangar as others install it.
 *
 *   npm run pack [-- --to DIR --format npm,deb,tar --arch x64|arm64 --version VERSION]
 *
 * npm: a package for projects that use the client, the emulator or the command; brings no Node.
 * deb: Debian's and Ubuntu's package, with the pinned Node and a service.
 * tar: the same tree for other systems; unpack it anywhere and run `bin/hangar service install`.
 * Beside them `hangar-VERSION.cdx.json`, what they are made of (CycloneDX).
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makeBundle, makeTarball } from "./pack/bundle.ts";
import { makeDeb } from "./pack/deb.ts";
import { makeNpmPackage } from "./pack/npm.ts";
import { ownPackage } from "./pack/stage.ts";
import { readLock } from "./supply-chain/lock-file.ts";
import { sbomOf } from "./supply-chain/sbom.ts";

export interface Packing {
  /** Where the finished package goes. */
  to: string;
  arch: string;
  version: string;
  /** An empty folder to work in. */
  work: string;
}

type Format = (packing: Packing, bundle: () => string) => string;

const FORMATS: Record<string, Format> = {
  npm: (packing) => makeNpmPackage(packing),
  deb: (packing, bundle) => makeDeb(packing, bundle()),
  tar: (packing, bundle) => makeTarball(packing, bundle()),
};
const ARCHES = ["x64", "arm64"];
/** Dependencies that make a package and are in none. */
const BUILD_ONLY = /^@esbuild\//;

function stop(text: string): never {
  process.stderr.write(`pack: ${text}\n`);
  process.exit(2);
}

const { values } = parseArgs({
  options: {
    to: { type: "string", default: "." },
    format: { type: "string", default: Object.keys(FORMATS).join(",") },
    arch: { type: "string", default: process.arch },
    version: { type: "string", default: ownPackage().version },
  },
});
const wanted = values.format.split(",");
const unknown = wanted.find((name) => !Object.hasOwn(FORMATS, name));
if (unknown !== undefined) stop(`--format is some of ${Object.keys(FORMATS).join(", ")}, not ${unknown}`);
if (!ARCHES.includes(values.arch)) stop(`--arch is one of ${ARCHES.join(", ")}, not ${values.arch}`);
if (!/^\d+\.\d+\.\d+(?:[.~+][\w.~+]+)?$/.test(values.version)) stop(`--version is like 1.2.3, not ${values.version}`);

const work = mkdtempSync(join(tmpdir(), "hangar-pack-"));
// Packed files are world-readable, independent of the umask.
process.umask(0o022);
chmodSync(work, 0o755);
try {
  const packing = { to: resolve(values.to), arch: values.arch, version: values.version, work };
  mkdirSync(packing.to, { recursive: true });
  let made: string | undefined;
  const bundle = (): string => (made ??= makeBundle(packing));
  for (const name of wanted) process.stdout.write(`${FORMATS[name]?.(packing, bundle)}\n`);
  const bom = sbomOf(readLock(), (name) => !BUILD_ONLY.test(name));
  const bom_file = join(packing.to, `hangar-${packing.version}.cdx.json`);
  writeFileSync(bom_file, `${JSON.stringify(bom, undefined, 2)}\n`);
  process.stdout.write(`${bom_file}\n`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
