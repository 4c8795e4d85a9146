import type { Verb } from "../verb.ts";
import { oidcTrustPolicy } from "./trust-policy.ts";
import { oidcKeys, oidcRotate, oidcVerify } from "./verbs.ts";

export const VERBS: readonly Verb[] = [oidcVerify, oidcTrustPolicy, oidcKeys, oidcRotate];
