import type { Verb } from "../verb.ts";
import { ipsAllocate, ipsList, ipsRelease, servicesList } from "./addresses.ts";
import { certsAdd, certsCheck, certsList, certsRemove, certsShow } from "./certificates.ts";
import { egressSet, egressShow } from "./egress.ts";
import { requestsList } from "./requests.ts";

export const VERBS: readonly Verb[] = [
  ipsList,
  ipsAllocate,
  ipsRelease,
  servicesList,
  requestsList,
  egressShow,
  egressSet,
  certsList,
  certsAdd,
  certsShow,
  certsCheck,
  certsRemove,
];
