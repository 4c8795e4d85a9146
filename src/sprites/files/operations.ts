/** Operations on files whose answers are small. */
import { fail } from "#core/errors.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import type { SpriteView } from "../types.ts";
import { ENTRY_FIELDS, type Entry, entryOf, fieldsOf, groupsOf, joined } from "./fields.ts";
import type { FileHelper, FileRun } from "./helper.ts";
import { matcherOf } from "./pattern.ts";

export interface FileCaller {
  helper: FileHelper;
  sprite: SpriteView;
  signal: AbortSignal;
}

export interface ListInput {
  path: string;
  recursive: boolean;
  pattern?: string;
}

/** What is in a folder, by name; of a file, that file. */
export async function listFiles({ helper, sprite, signal }: FileCaller, input: ListInput): Promise<Entry[]> {
  const { path, recursive, pattern } = input;
  const matches = pattern === undefined || pattern === "" ? () => true : matcherOf(pattern);
  const most = SPRITE_LIMITS.file_entries;
  return await helper.run(sprite, { words: ["list", path, flag(recursive)], path }, signal, async (run) => {
    const found: Entry[] = [];
    let itself: Entry | undefined;
    for await (const group of groupsOf(fieldsOf(run.stdout), ENTRY_FIELDS)) {
      const entry = entryOf(group, path);
      if (!itself) itself = entry;
      else if (matches(entry.name)) found.push(entry);
      if (found.length > most)
        fail("limit_reached", `${path} has more than ${most} entries (limit file_entries)`, {
          hint: "list its folders one by one, or give a pattern",
        });
    }
    await run.finished();
    if (itself && !itself.isDir) return [itself];
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  });
}

/** The entry itself: of a link, where it points to. */
export async function statFile(
  { helper, sprite, signal }: FileCaller,
  path: string,
): Promise<Entry & { target?: string }> {
  return await helper.run(sprite, { words: ["stat", path], path }, signal, async (run) => {
    const fields = await answerOf(run);
    const target = fields[ENTRY_FIELDS];
    return { ...entryOf(fields, path), ...(target ? { target } : {}) };
  });
}

/** What was removed: the first paths, and how many there were. */
export async function deleteFile(
  { helper, sprite, signal }: FileCaller,
  { path, recursive }: { path: string; recursive: boolean },
): Promise<{ deleted: string[]; count: number }> {
  return await helper.run(sprite, { words: ["delete", path, flag(recursive)], path }, signal, async (run) => {
    const fields = await answerOf(run);
    const count = Number(fields.pop());
    const folder = path.replace(/\/+$/, "").replace(/[^/]*$/, "");
    return { deleted: fields.map((one) => joined(folder, one)), count };
  });
}

/** An operation that answers nothing. */
export async function changeFile({ helper, sprite, signal }: FileCaller, words: readonly string[]): Promise<void> {
  await helper.run(sprite, { words, path: words[1] ?? "" }, signal, async (run) => {
    await answerOf(run);
  });
}

export interface Owners {
  uid?: number | string;
  gid?: number | string;
}

/** Owners by number, or by the names that the sprite itself has for them. */
export async function changeOwner(
  caller: FileCaller,
  { path, recursive, uid, gid }: Owners & { path: string; recursive: boolean },
): Promise<void> {
  if (uid === undefined && gid === undefined) fail("invalid_request", "uid or gid is missing");
  const user = await ownerOf(caller, uid, "/etc/passwd");
  const group = await ownerOf(caller, gid, "/etc/group");
  await changeFile(caller, ["chown", path, user, group, flag(recursive)]);
}

const AS_IT_IS = "-";
const OWNER_MAX = 0xffff_fffe;

async function ownerOf(caller: FileCaller, owner: number | string | undefined, file: string): Promise<string> {
  if (owner === undefined || owner === "") return AS_IT_IS;
  const number = Number(owner);
  if (Number.isInteger(number) && number >= 0 && number <= OWNER_MAX) return String(number);
  const lines = (await smallFile(caller, file)).split("\n").map((line) => line.split(":"));
  const found = lines.find(([name]) => name === owner)?.[2] ?? "";
  if (/^\d{1,10}$/.test(found)) return found;
  fail("invalid_request", `the sprite's ${file} has no ${String(owner).slice(0, NAME_SHOWN)}`);
}

const NAME_SHOWN = 100;

async function smallFile({ helper, sprite, signal }: FileCaller, path: string): Promise<string> {
  return await helper.run(sprite, { words: ["read", path], path }, signal, async (run) => {
    const pieces: Buffer[] = [];
    let left: number = SPRITE_LIMITS.file_users_bytes;
    for await (const piece of run.stdout as AsyncIterable<Buffer>) {
      pieces.push(piece);
      left -= piece.length;
      if (left < 0) fail("limit_reached", `the sprite's ${path} is too large (limit file_users_bytes)`);
    }
    await run.finished();
    return Buffer.concat(pieces).toString();
  });
}

const ANSWER_FIELDS = 2000;

async function answerOf(run: FileRun): Promise<string[]> {
  const fields: string[] = [];
  for await (const field of fieldsOf(run.stdout))
    if (fields.push(field) > ANSWER_FIELDS) throw new Error("an endless answer");
  await run.finished();
  return fields;
}

export const flag = (is_on: boolean | undefined): string => (is_on ? "1" : "0");
