/** Limits of deploys that the platform runs itself. Each comment says what happens when the limit is reached. */
export const DEPLOYMENT_LIMITS = {
  /** Deploys and dry runs in parallel in one process. One more: 503 `overloaded`. */
  deployments_parallel: 4,
  /** Time limit of a deploy. Past it: it is aborted, and its release is marked as failed. */
  deployment_ms: 90 * 60_000,
  /** Time limit of a dry run. Past it: 503 `overloaded`. */
  deployment_plan_ms: 60_000,
  /** Lines of output of one deploy. Past it: the rest is omitted. */
  deployment_output_lines: 5000,
  /** Length of one line of it. Past it: the rest of the line is omitted. */
  deployment_line_chars: 4000,
  /** Machines of one process group in a scale request. Past it: 400 `invalid_request`. */
  scale_machines: 1000,
} as const;
