import type { Static } from "typebox";
import { Type } from "#http/schema.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import { OrgQuery } from "../schema.ts";

const text = Type.String();
const Path = Type.Optional(Type.String({ description: "The file or folder, absolute or below `workingDir`." }));
const Folder = Type.Optional(Type.String({ description: "The folder of relative paths; the root by default." }));
const Recursive = Type.Optional(Type.Boolean({ description: "With everything below a folder." }));
const AsRoot = Type.Optional(Type.Boolean({ description: "Is always so." }));
const Mode = Type.String({ description: "Octal, such as 0644." });

export const PathQuery = Type.Object({ ...OrgQuery.properties, path: Path, workingDir: Folder });

export const WriteQuery = Type.Object({
  ...PathQuery.properties,
  mode: Type.Optional(Mode),
  mkdirParents: Type.Optional(Type.Boolean({ description: "Make folders that are missing." })),
  mkdir: Type.Optional(Type.Boolean({ description: "The same." })),
});

export const ListQuery = Type.Object({
  ...PathQuery.properties,
  recursive: Recursive,
  pattern: Type.Optional(
    Type.String({
      maxLength: SPRITE_LIMITS.file_pattern_chars,
      description: "Only names that match, such as `*.ts`; with a slash it is about the path, as `src/**/*.ts`.",
    }),
  ),
});

export const DeleteQuery = Type.Object({ ...PathQuery.properties, recursive: Recursive, asRoot: AsRoot });
export const WatchQuery = OrgQuery;

export const RenameBody = Type.Object({
  source: text,
  dest: text,
  workingDir: Folder,
  asRoot: AsRoot,
});
export type RenameBody = Static<typeof RenameBody>;

export const CopyBody = Type.Object({
  ...RenameBody.properties,
  recursive: Recursive,
  preserveAttrs: Type.Optional(Type.Boolean({ description: "With owners, all of the mode, and times." })),
});

const Changing = { path: text, workingDir: Folder, recursive: Recursive, asRoot: AsRoot };
export const ChmodBody = Type.Object({ ...Changing, mode: Mode });

const Owner = Type.Optional(Type.Union([Type.Integer(), text], { description: "A number, or a name of the sprite." }));
export const ChownBody = Type.Object({ ...Changing, uid: Owner, gid: Owner });

const Entry = Type.Object({
  name: Type.String({ description: "Below the folder that is listed." }),
  path: text,
  type: Type.String({
    description: "`file`, `directory`, `symlink`, `fifo`, `socket`, `character_device` or `block_device`.",
  }),
  size: Type.Integer(),
  mode: Mode,
  modTime: text,
  isDir: Type.Boolean(),
  uid: Type.Integer(),
  gid: Type.Integer(),
});
export const Stat = Type.Object({ ...Entry.properties, target: Type.Optional(text) });

export const Listed = Type.Object({ path: text, entries: Type.Array(Entry), count: Type.Integer() });
export const Written = Type.Object({ path: text, size: Type.Integer(), mode: Mode });
export const Deleted = Type.Object({ deleted: Type.Array(text), count: Type.Integer() });
export const Moved = Type.Object({ source: text, dest: text });
export const Changed = Type.Object({ path: text });
