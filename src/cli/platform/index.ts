import type { Verb } from "../verb.ts";
import { completion } from "./completion.ts";
import { dashboard } from "./dashboard.ts";
import { doctor } from "./doctor.ts";
import { emulator } from "./emulator.ts";
import { explainField } from "./explain.ts";
import { serviceInstall, serviceStatus, serviceUninstall } from "./service.ts";
import { backup, down, restore, up } from "./verbs.ts";

export const VERBS: readonly Verb[] = [
  up,
  explainField,
  dashboard,
  down,
  doctor,
  backup,
  restore,
  emulator,
  serviceInstall,
  serviceUninstall,
  serviceStatus,
  completion,
];
