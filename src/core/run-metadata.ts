/** The metadata of machines that run one command and end: set by the command line, read when a run is recorded. */

/** Its value is the command, for display. */
export const RUN_KEY = "hangar_run";
/** `release` for release commands; otherwise absent. */
export const RUN_KIND_KEY = "hangar_run_kind";
