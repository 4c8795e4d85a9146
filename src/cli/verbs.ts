import { apply, exportApps } from "./apply/verbs.ts";
import { appsCreate, appsDelete, appsList, appsShow } from "./apps/verbs.ts";
import { authToken } from "./auth/token.ts";
import { authWhoami } from "./auth/whoami.ts";
import {
  connectorsConnect,
  connectorsCreate,
  connectorsCustom,
  connectorsFinish,
  connectorsProvision,
} from "./connectors/create.ts";
import {
  connectorsAudit,
  connectorsDelete,
  connectorsExplain,
  connectorsList,
  connectorsPolicy,
  connectorsProviders,
  connectorsRotate,
  connectorsShow,
  connectorsTest,
} from "./connectors/verbs.ts";
import { contextAdd, contextList, contextRemove, contextShow, contextUse } from "./contexts/verbs.ts";
import { dbBackups, dbExport, dbImport, dbInfo, dbLease, dbNode, dbNodes, dbPromote, dbRestore } from "./db/verbs.ts";
import { deploy, diff, releases, rollback, scale } from "./deploy/verbs.ts";
import {
  hostsCordon,
  hostsDrain,
  hostsFail,
  hostsJoinToken,
  hostsList,
  hostsRecover,
  hostsRemove,
  hostsShow,
  hostsUncordon,
  regionsList,
} from "./hosts/verbs.ts";
import { imagesGc, imagesImport, imagesList, imagesPull, imagesRemove, imagesShow } from "./images/verbs.ts";
import { machinesExplain } from "./machines/explain.ts";
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
import { machinesMove } from "./machines/move.ts";
import { run } from "./machines/run.ts";
import { ssh } from "./machines/ssh.ts";
import { top } from "./machines/top.ts";
import { machinesList, machinesRun, machinesShow, machinesUpdate, machinesWait } from "./machines/verbs.ts";
import { machinesSignal, machinesVersions } from "./machines/versions.ts";

import { metricsCardinality, metricsTargets } from "./metrics/about.ts";
import { metricsQuery, metricsRange, metricsSeries, metricsTop } from "./metrics/verbs.ts";

import { ipsAllocate, ipsList, ipsRelease, proxyReload, servicesList } from "./network/addresses.ts";
import { certsAdd, certsList, certsRemove, certsShow } from "./network/certificates.ts";
import { oidcTrustPolicy } from "./oidc/trust-policy.ts";
import { oidcKeys, oidcRotate, oidcVerify } from "./oidc/verbs.ts";
import { orgsCreate, orgsDelete, orgsList, orgsShow } from "./orgs/verbs.ts";
import { completion } from "./platform/completion.ts";
import { dashboard } from "./platform/dashboard.ts";
import { doctor } from "./platform/doctor.ts";
import { emulator } from "./platform/emulator.ts";
import { explainField } from "./platform/explain.ts";
import { backup, down, restore, up } from "./platform/verbs.ts";
import { postgresCreate } from "./postgres/create.ts";
import { secretsList, secretsSet, secretsUnset } from "./secrets/verbs.ts";
import { tokensAttenuate } from "./tokens/attenuate.ts";
import { tokensCreate } from "./tokens/create.ts";
import { tokensInspect } from "./tokens/inspect.ts";
import { tokensList } from "./tokens/list.ts";
import { tokensRevoke } from "./tokens/revoke.ts";
import type { Verb } from "./verb.ts";
import { diskFree, garbageCollect } from "./volumes/disk.ts";
import { snapshotsCreate, snapshotsDelete, snapshotsList, snapshotsRestore } from "./volumes/snapshots.ts";
import {
  volumesCreate,
  volumesDelete,
  volumesExtend,
  volumesFork,
  volumesList,
  volumesShow,
  volumesUndelete,
  volumesUpdate,
} from "./volumes/verbs.ts";
import { webhooksCreate, webhooksDelete, webhooksList } from "./webhooks/verbs.ts";

/** Every command, in the order of the help. */
export const VERBS: readonly Verb[] = [
  up,
  run,
  ssh,
  top,
  deploy,
  diff,
  scale,
  releases,
  rollback,
  exportApps,
  apply,
  explainField,
  dashboard,
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
  imagesList,
  imagesImport,
  imagesPull,
  imagesShow,
  imagesRemove,
  imagesGc,
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
  connectorsList,
  connectorsProviders,
  connectorsCreate,
  connectorsCustom,
  connectorsProvision,
  connectorsConnect,
  connectorsFinish,
  connectorsShow,
  connectorsPolicy,
  connectorsExplain,
  connectorsTest,
  connectorsRotate,
  connectorsAudit,
  connectorsDelete,
  oidcVerify,
  oidcTrustPolicy,
  oidcKeys,
  oidcRotate,
  logs,
  metricsTop,
  metricsQuery,
  metricsRange,
  metricsSeries,
  metricsTargets,
  metricsCardinality,
  webhooksCreate,
  webhooksList,
  webhooksDelete,
  postgresCreate,
  ipsList,
  ipsAllocate,
  ipsRelease,
  servicesList,
  certsList,
  certsAdd,
  certsShow,
  certsRemove,
  proxyReload,
  dbNode,
  dbNodes,
  dbInfo,
  dbPromote,
  dbLease,
  dbExport,
  dbImport,
  dbBackups,
  dbRestore,
  hostsList,
  hostsShow,
  hostsJoinToken,
  hostsCordon,
  hostsUncordon,
  hostsDrain,
  hostsFail,
  hostsRecover,
  hostsRemove,
  regionsList,
  doctor,
  backup,
  restore,
  emulator,
  contextAdd,
  contextList,
  contextUse,
  contextShow,
  contextRemove,
  completion,
];
