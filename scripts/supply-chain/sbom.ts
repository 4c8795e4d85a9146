/**
 * The software bill of materials of the package: CycloneDX 1.6 as JSON, made from the lock file alone. The same lock file
 * gives the same document, byte for byte, so there is no time in it.
 */
import { createHash } from "node:crypto";
import { licenceOf } from "./licences.ts";
import { type LockEntry, type LockedPackage, type LockFile, packagesOf } from "./lock-file.ts";

interface Component {
  type: "application" | "library";
  "bom-ref": string;
  name: string;
  version: string;
  purl: string;
  scope?: "required" | "optional";
  licenses?: ({ license: { id: string } } | { expression: string })[];
  hashes?: { alg: string; content: string }[];
}

export interface Bom {
  $schema: string;
  bomFormat: "CycloneDX";
  specVersion: "1.6";
  serialNumber: string;
  version: number;
  metadata: { component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/** `accepts` says which packages are passed on beside the dependencies; the pinned Node of a checkout is not. */
export function sbomOf(lock: LockFile, accepts: (name: string) => boolean): Bom {
  const all = packagesOf(lock);
  const own = lock.packages[""] ?? { version: lock.version };
  const at = new Map(all.map((one) => [one.at, one]));
  const reached = new Map<string, LockedPackage>();
  const dependencies: Bom["dependencies"] = [];
  const visit = (ref: string, folder: string, entry: LockEntry): void => {
    const needed = [...Object.keys(entry.dependencies ?? {}), ...Object.keys(entry.optionalDependencies ?? {})];
    const found = needed.filter(accepts).flatMap((name) => resolved(at, folder, name) ?? []);
    dependencies.push({ ref, dependsOn: [...new Set(found.map(purlOf))].sort() });
    for (const one of found) {
      if (reached.has(purlOf(one))) continue;
      reached.set(purlOf(one), one);
      visit(purlOf(one), one.at, one);
    }
  };
  const self = `pkg:npm/${lock.name.replace("@", "%40")}@${lock.version}`;
  visit(self, "", own);
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify(lock))}`,
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": self,
        name: lock.name,
        version: lock.version,
        purl: self,
        ...licensed(own.license),
      },
    },
    components: [...reached.values()].map(componentOf).sort((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1)),
    dependencies: dependencies.sort((a, b) => (a.ref < b.ref ? -1 : 1)),
  };
}

/** As Node looks for a package: in the folder's own node_modules, then in those of the folders above. */
function resolved(at: ReadonlyMap<string, LockedPackage>, folder: string, name: string): LockedPackage | undefined {
  for (let from = folder; ; from = from.slice(0, Math.max(0, from.lastIndexOf("node_modules/") - 1))) {
    const found = at.get(from === "" ? `node_modules/${name}` : `${from}/node_modules/${name}`);
    if (found || from === "") return found;
  }
}

const purlOf = ({ name, version }: LockedPackage): string => `pkg:npm/${name.replace("@", "%40")}@${version}`;

function componentOf(one: LockedPackage): Component {
  return {
    type: "library",
    "bom-ref": purlOf(one),
    name: one.name,
    version: one.version,
    purl: purlOf(one),
    scope: one.optional ? "optional" : "required",
    ...licensed(licenceOf(one)),
    ...(one.integrity ? { hashes: [hashOf(one.integrity)] } : {}),
  };
}

/** One licence by its name; a choice of several as an expression of SPDX. */
const licensed = (id: string | undefined): Pick<Component, "licenses"> =>
  id ? { licenses: [id.includes(" ") ? { expression: id } : { license: { id } }] } : {};

/** `sha512-<base64>` → the name and the hexadecimal digits that CycloneDX has. */
function hashOf(integrity: string): { alg: string; content: string } {
  const [algorithm = "", base64 = ""] = integrity.split("-");
  return { alg: algorithm.replace(/^sha/, "SHA-"), content: Buffer.from(base64, "base64").toString("hex") };
}

/** A UUID of version 8 (RFC 9562): its bits are ours to choose, here those of a hash. */
function uuidOf(text: string): string {
  const digest = createHash("sha256").update(text).digest("hex");
  const variant = "89ab"[Number.parseInt(digest[16] ?? "0", 16) % 4];
  return [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `${variant}${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ].join("-");
}
