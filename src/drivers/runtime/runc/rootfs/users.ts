/** Resolves the user that a process runs as; names are looked up in the image's own files. */
import type { GuestTree } from "../../../linux/guest-tree.ts";
import { RUNC_LIMITS } from "../limits.ts";

export interface User {
  uid: number;
  gid: number;
  groups: number[];
  home: string;
}

/** The highest id in a machine. */
const LAST = 65_535;

/** Parses `user`, `uid`, `user:group` or empty, which means root. */
export function userOf(tree: Pick<GuestTree, "read">, text: string): User {
  const [name = "", group] = text.split(":", 2);
  const users = lines(tree, "/etc/passwd");
  const groups = lines(tree, "/etc/group");
  const wanted = name || "0";
  const entry = users.find(([login, , uid]) => login === wanted || (isId(wanted) && uid === wanted));
  const uid = entry ? id(entry[2], text) : isId(wanted) ? id(wanted, text) : unknown("user", wanted, "/etc/passwd");
  const login = entry?.[0];
  const own = groups.filter(([, , , members]) => login !== undefined && members?.split(",").includes(login));
  return {
    uid,
    gid: group ? groupOf(groups, group, text) : id(entry?.[3] ?? "0", text),
    groups: group ? [] : own.map(([, , gid]) => id(gid, text)).slice(0, GROUPS_MAX),
    home: entry?.[5] || "/",
  };
}

/** The maximum of process 1. */
const GROUPS_MAX = 64;

function groupOf(groups: string[][], wanted: string, text: string): number {
  const entry = groups.find(([name]) => name === wanted);
  if (entry) return id(entry[2], text);
  return isId(wanted) ? id(wanted, text) : unknown("group", wanted, "/etc/group");
}

const isId = (text: string): boolean => /^\d{1,10}$/.test(text);

function id(text: string | undefined, from: string): number {
  const number = Number(text);
  if (!isId(text ?? "") || number > LAST) {
    throw new Error(`user "${from}": ${text} is no id of a machine; they go from 0 to ${LAST}`);
  }
  return number;
}

function unknown(kind: string, name: string, file: string): never {
  throw new Error(`the image has no ${kind} "${name}" (in its ${file})`);
}

function lines(tree: Pick<GuestTree, "read">, file: string): string[][] {
  const text = tree.read(file, RUNC_LIMITS.passwd_bytes)?.toString("utf8") ?? "";
  return text.split("\n").map((line) => line.split(":"));
}
