/** Limits of deploys that the platform runs itself. Each comment says what happens when the limit is reached. */
export const DEPLOYMENT_LIMITS = {
  /** Deploys and dry runs at a time in one process. One more: 503 `overloaded`. */
  deployments_parallel: 4,
  /** A deploy may take this long; then it is ended, and its release is marked as failed. */
  deployment_ms: 90 * 60_000,
  /** A dry run may take this long. Past it: 503 `overloaded`. */
  deployment_plan_ms: 60_000,
  /** Lines of output of one deploy. Past it: the rest is left out. */
  deployment_output_lines: 5000,
  /** Characters of one line of it. Past it: the rest of the line is left out. */
  deployment_line_chars: 4000,
  /** Machines of one process group that a request may ask for. Past it: 400 `invalid_request`. */
  scale_machines: 1000,
} as const;
