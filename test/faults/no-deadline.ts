/** Loaded before a process of a control (`--import`): its calls to the database have no deadline that would ever come. */
import { LIMITS } from "#core/limits.ts";

const NEVER_MS = 24 * 60 * 60 * 1000;
Object.assign(LIMITS, { postgres_call_ms: NEVER_MS, postgres_probe_ms: NEVER_MS, postgres_connect_ms: NEVER_MS });
