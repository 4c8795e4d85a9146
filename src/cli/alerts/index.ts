import type { Verb } from "../verb.ts";
import { alertsList } from "./list.ts";
import { alertsApply, alertsDelete, alertsRules, alertsShow, alertsTest } from "./rules.ts";

export const VERBS: readonly Verb[] = [alertsList, alertsRules, alertsShow, alertsApply, alertsTest, alertsDelete];
