import type { Verb } from "../verb.ts";
import { diskFree, garbageCollect } from "./disk.ts";
import { snapshotsCreate, snapshotsDelete, snapshotsList, snapshotsRestore } from "./snapshots.ts";
import {
  volumesCreate,
  volumesDelete,
  volumesExtend,
  volumesFork,
  volumesList,
  volumesShow,
  volumesUndelete,
  volumesUpdate,
} from "./verbs.ts";

export const VERBS: readonly Verb[] = [
  volumesList,
  volumesCreate,
  volumesShow,
  volumesExtend,
  volumesUpdate,
  volumesFork,
  volumesDelete,
  volumesUndelete,
  snapshotsList,
  snapshotsCreate,
  snapshotsRestore,
  snapshotsDelete,
  diskFree,
  garbageCollect,
];
