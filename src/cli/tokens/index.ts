import type { Verb } from "../verb.ts";
import { tokensAttenuate } from "./attenuate.ts";
import { tokensCreate } from "./create.ts";
import { tokensInspect } from "./inspect.ts";
import { tokensList } from "./list.ts";
import { tokensRevoke } from "./revoke.ts";

export const VERBS: readonly Verb[] = [tokensCreate, tokensList, tokensRevoke, tokensAttenuate, tokensInspect];
