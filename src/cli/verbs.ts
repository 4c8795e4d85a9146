import { appsCreate, appsDelete, appsList, appsShow } from "./apps/verbs.ts";
import { authToken } from "./auth/token.ts";
import { authWhoami } from "./auth/whoami.ts";
import { dbInfo, dbNode, dbPromote, dbRestore } from "./db/verbs.ts";
import { machinesEvents, machinesExec, machinesLease, machinesMetadata, machinesPs } from "./machines/inside.ts";
import {
  machinesCordon,
  machinesDestroy,
  machinesRestart,
  machinesStart,
  machinesStop,
  machinesSuspend,
  machinesUncordon,
} from "./machines/lifecycle.ts";
import { logs, machinesLogs } from "./machines/logs.ts";
import { machinesList, machinesRun, machinesShow, machinesUpdate, machinesWait } from "./machines/verbs.ts";
import { metricsQuery, metricsRange, metricsSeries, metricsTop } from "./metrics/verbs.ts";
import { orgsCreate, orgsDelete, orgsList, orgsShow } from "./orgs/verbs.ts";
import { completion } from "./platform/completion.ts";
import { doctor } from "./platform/doctor.ts";
import { backup, down, restore, up } from "./platform/verbs.ts";
import { postgresCreate } from "./postgres/create.ts";
import { secretsList, secretsSet, secretsUnset } from "./secrets/verbs.ts";
import { tokensAttenuate } from "./tokens/attenuate.ts";
import { tokensCreate } from "./tokens/create.ts";
import { tokensInspect } from "./tokens/inspect.ts";
import { tokensList } from "./tokens/list.ts";
import { tokensRevoke } from "./tokens/revoke.ts";
import type { Verb } from "./verb.ts";

/** Every command, in the order of the help. */
export const VERBS: readonly Verb[] = [
  up,
  down,
  authToken,
  authWhoami,
  tokensCreate,
  tokensList,
  tokensRevoke,
  tokensAttenuate,
  tokensInspect,
  orgsList,
  orgsCreate,
  orgsShow,
  orgsDelete,
  appsList,
  appsCreate,
  appsShow,
  appsDelete,
  secretsList,
  secretsSet,
  secretsUnset,
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
  machinesExec,
  machinesPs,
  machinesLogs,
  machinesDestroy,
  logs,
  metricsTop,
  metricsQuery,
  metricsRange,
  metricsSeries,
  postgresCreate,
  dbNode,
  dbInfo,
  dbPromote,
  dbRestore,
  doctor,
  backup,
  restore,
  completion,
];
