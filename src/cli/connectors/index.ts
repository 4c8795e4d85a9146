import type { Verb } from "../verb.ts";
import {
  connectorsConnect,
  connectorsCreate,
  connectorsCustom,
  connectorsFinish,
  connectorsProvision,
} from "./create.ts";
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
} from "./verbs.ts";

export const VERBS: readonly Verb[] = [
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
];
