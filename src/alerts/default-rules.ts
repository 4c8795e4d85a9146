/** Default rules of every organization. `summary` describes the problem, `description` what to do. */
import type { AlertingRule, RuleGroup } from "./rules/types.ts";

const MINUTE = 60_000;

type Severity = "critical" | "warning";
type Row = [alert: string, severity: Severity, for_ms: number, expr: string, summary: string, description: string];

const ROWS: readonly Row[] = [
  [
    "MachineRestarting",
    "warning",
    0,
    "sum by (app, instance) (count_over_time(svc_instance_exit_code[15m])) >= 3",
    "A machine of {{ $labels.app }} ended {{ $value }} times in 15 minutes",
    "Read its last log lines with `hangar logs --app {{ $labels.app }}`; `hangar releases --app {{ $labels.app }}` shows what changed, `hangar rollback` goes back.",
  ],
  [
    "MachineOutOfMemory",
    "critical",
    0,
    "max by (app, instance) (max_over_time(svc_instance_exit_oom[10m])) > 0 or sum by (app, instance) (increase(svc_instance_oom_kills[10m])) > 0",
    "A machine of {{ $labels.app }} ran out of memory",
    "Give it more (`hangar scale memory 512 --app {{ $labels.app }}`), or look for what grows: `hangar metrics range svc_instance_memory_mem_available`.",
  ],
  [
    "MachineNotMeasured",
    "warning",
    2 * MINUTE,
    "svc_instance_up == 0",
    "A machine of {{ $labels.app }} runs and cannot be measured ({{ $labels.instance }})",
    "`hangar doctor` on its host says what is wrong there.",
  ],
  [
    "VolumeAlmostFull",
    "critical",
    5 * MINUTE,
    "svc_volume_used_pct > 90",
    'Volume {{ $labels.id }} of {{ $labels.app }} is {{ printf "%.0f" $value }} % full',
    "Extend it (`hangar volumes extend`), or delete what is no longer needed; `auto_extend_size_threshold` in [mounts] extends it by itself.",
  ],
  [
    "VolumeFullSoon",
    "warning",
    30 * MINUTE,
    "svc_volume_used_pct > 60 and predict_linear(svc_volume_used_pct[6h], 86400) > 100",
    'Volume {{ $labels.id }} of {{ $labels.app }} will be full within a day: {{ printf "%.0f" $value }} % are used',
    "Extend it (`hangar volumes extend`) before that, or find what writes: `hangar ssh --app {{ $labels.app }}`.",
  ],
  [
    "CheckFailing",
    "critical",
    2 * MINUTE,
    "svc_instance_check_passing == 0",
    "Check {{ $labels.check }} of a machine of {{ $labels.app }} fails ({{ $labels.instance }})",
    "`hangar status --app {{ $labels.app }}` shows what the check got; the machine gets no requests until it passes.",
  ],
  [
    "CertificateEndsSoon",
    "warning",
    60 * MINUTE,
    "svc_certificate_not_after_seconds - time() < 14 * 86400",
    "The certificate of {{ $labels.host_name }} ends in {{ $value | humanizeDuration }}",
    "It should have been renewed: `hangar certs check {{ $labels.host_name }}` says why it was not.",
  ],
  [
    "ReplicaLagging",
    "warning",
    5 * MINUTE,
    "max by (app, instance) (hangar_db_lag_seconds) > 60 or max by (app, instance) (pg_replication_lag) > 60",
    "A replica of {{ $labels.app }} is {{ $value | humanizeDuration }} behind",
    "`hangar db status --app {{ $labels.app }}` shows every node; a node that stays behind has too little disk or network.",
  ],
  [
    "DatabaseWithoutPrimary",
    "critical",
    MINUTE,
    "sum by (app) (hangar_db_is_primary) == 0",
    "No node of {{ $labels.app }}'s database accepts writes",
    "`hangar db status --app {{ $labels.app }}` shows why no node is primary; reads go on.",
  ],
  [
    "HostLost",
    "critical",
    0,
    "svc_host_up == 0",
    "Host {{ $labels.host }} does not renew its lease",
    "`hangar hosts list` shows its machines; those without volumes start elsewhere. `journalctl -u hangar` on the host says more.",
  ],
  [
    "ManyErrors",
    "critical",
    5 * MINUTE,
    'sum by (app) (rate(svc_edge_http_responses_count{status=~"5.."}[5m])) / sum by (app) (rate(svc_edge_http_responses_count[5m])) > 0.05',
    "{{ $value | humanizePercentage }} of the responses of {{ $labels.app }} are errors",
    "`hangar logs --app {{ $labels.app }}` shows why; `hangar rollback --app {{ $labels.app }}` returns to the release before.",
  ],
];

const rule = ([alert, severity, for_ms, expr, summary, description]: Row): AlertingRule => ({
  kind: "alerting",
  alert,
  expr,
  for_ms,
  keep_firing_for_ms: 0,
  labels: { severity },
  annotations: { summary, description },
});

/** The name of the default rule file; an organization's own file of this name replaces it. */
export const DEFAULT_FILE = "default";
export const DEFAULT_GROUPS: readonly RuleGroup[] = [{ name: "hangar", limit: 0, rules: ROWS.map(rule) }];
