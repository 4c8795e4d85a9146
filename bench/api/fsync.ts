/** Prints how long an fsync takes, for a caller that has slowed it down. */
import { fsyncMs } from "../report.ts";

process.stdout.write(`${fsyncMs(100)}\n`);
