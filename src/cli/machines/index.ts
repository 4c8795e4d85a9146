import type { Verb } from "../verb.ts";
import { machinesExplain } from "./explain.ts";
import { machinesEvents, machinesExec, machinesLease, machinesMetadata, machinesPs } from "./inside.ts";
import {
  machinesCordon,
  machinesDestroy,
  machinesRestart,
  machinesStart,
  machinesStop,
  machinesSuspend,
  machinesUncordon,
} from "./lifecycle.ts";
import { logs, machinesLogs } from "./logs.ts";
import { machinesMove } from "./move.ts";
import { run } from "./run.ts";
import { ssh } from "./ssh.ts";
import { ps, status } from "./status.ts";
import { top } from "./top.ts";
import { machinesList, machinesRun, machinesShow, machinesUpdate, machinesWait } from "./verbs.ts";
import { machinesSignal, machinesVersions } from "./versions.ts";

export const VERBS: readonly Verb[] = [
  run,
  ps,
  status,
  ssh,
  top,
  machinesList,
  machinesRun,
  machinesShow,
  machinesUpdate,
  machinesStart,
  machinesStop,
  machinesSuspend,
  machinesRestart,
  machinesWait,
  machinesCordon,
  machinesUncordon,
  machinesMetadata,
  machinesLease,
  machinesEvents,
  machinesVersions,
  machinesSignal,
  machinesExplain,
  machinesExec,
  machinesPs,
  machinesLogs,
  machinesMove,
  machinesDestroy,
  logs,
];
