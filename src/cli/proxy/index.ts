import type { Verb } from "../verb.ts";
import { proxyPort } from "./port.ts";
import { proxyReload } from "./reload.ts";

export const VERBS: readonly Verb[] = [proxyPort, proxyReload];
