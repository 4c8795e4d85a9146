import type { Verb } from "../verb.ts";
import { alertsList } from "./list.ts";
import { alertsNotifications, alertsReceivers, alertsSilence, alertsSilences, alertsTry } from "./receivers.ts";
import { alertsApply, alertsDelete, alertsRules, alertsShow, alertsTest } from "./rules.ts";

export const VERBS: readonly Verb[] = [
  alertsList,
  alertsRules,
  alertsShow,
  alertsApply,
  alertsTest,
  alertsDelete,
  alertsReceivers,
  alertsTry,
  alertsNotifications,
  alertsSilence,
  alertsSilences,
];
