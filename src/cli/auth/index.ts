import type { Verb } from "../verb.ts";
import { authToken } from "./token.ts";
import { authWhoami } from "./whoami.ts";

export const VERBS: readonly Verb[] = [authToken, authWhoami];
