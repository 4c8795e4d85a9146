/** Unit tests of rules next to Debian's promtool: the same files, the same verdicts, the same texts of alerts. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { DEFAULT_GROUPS } from "../../src/alerts/default-rules.ts";
import { printRuleFile } from "../../src/alerts/rules/print.ts";
import { random, seed, tempDir } from "../support.ts";

const ROOT = join(import.meta.dirname, "../..");
const FILES = join(ROOT, "test/rules");
const PROMTOOL = "/usr/bin/promtool";
const skip = existsSync(PROMTOOL) ? undefined : "needs promtool: apt-get install prometheus";

const ours = (file: string) =>
  spawnSync(process.execPath, [join(ROOT, "src/alerts/test-rules.ts"), file], { encoding: "utf8" });
const theirs = (file: string) => spawnSync(PROMTOOL, ["test", "rules", file], { encoding: "utf8" });

/** The texts of alerts by their label `kind`, as either program prints what it got. */
function texts(printed: string, form: RegExp): Map<string, Map<string, string>> {
  const found = new Map<string, Map<string, string>>();
  for (const [, labels = "", annotations = ""] of printed.matchAll(form)) {
    const kind = /kind="(\w+)"/.exec(labels)?.[1];
    const pairs = [...annotations.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    if (kind) found.set(kind, new Map(pairs.map(([, name = "", text = ""]) => [name, text])));
  }
  return found;
}

/** What each default rule fires on, minute by minute, and a neighbour of it that has nothing wrong. */
const DEFAULT_CASES: Record<string, { fires: Record<string, string>; labels: string; at: string }> = {
  MachineRestarting: {
    fires: {
      'svc_instance_exit_code{app="web",instance="a"}': "1 0 1",
      'svc_instance_exit_code{app="web",instance="b"}': "0 0",
    },
    labels: 'app="web",instance="a",severity="warning"',
    at: "3m",
  },
  MachineOutOfMemory: {
    fires: {
      'svc_instance_exit_oom{app="web",instance="a"}': "0 1 0",
      'svc_instance_exit_oom{app="web",instance="b"}': "0 0 0",
      'svc_instance_oom_kills{app="web",instance="b"}': "7 7 7",
    },
    labels: 'app="web",instance="a",severity="critical"',
    at: "3m",
  },
  MachineNotMeasured: {
    fires: { 'svc_instance_up{app="web",instance="a"}': "0x9", 'svc_instance_up{app="web",instance="b"}': "1 0 0 1x6" },
    labels: 'app="web",instance="a",severity="warning"',
    at: "4m",
  },
  VolumeAlmostFull: {
    fires: { 'svc_volume_used_pct{app="web",id="v1"}': "91x9", 'svc_volume_used_pct{app="web",id="v2"}': "90x9" },
    labels: 'app="web",id="v1",severity="critical"',
    at: "7m",
  },
  VolumeFullSoon: {
    fires: {
      'svc_volume_used_pct{app="web",id="v1"}': "61+0.05x90",
      'svc_volume_used_pct{app="web",id="v2"}': "65x90",
    },
    labels: 'app="web",id="v1",severity="warning"',
    at: "80m",
  },
  CheckFailing: {
    fires: {
      'svc_instance_check_passing{app="web",instance="a",check="http"}': "1 0x9",
      'svc_instance_check_passing{app="web",instance="b",check="http"}': "1x9",
    },
    labels: 'app="web",check="http",instance="a",severity="critical"',
    at: "5m",
  },
  CertificateEndsSoon: {
    fires: {
      'svc_certificate_not_after_seconds{host_name="soon.example"}': "1000000x99",
      'svc_certificate_not_after_seconds{host_name="late.example"}': "9000000x99",
    },
    labels: 'host_name="soon.example",severity="warning"',
    at: "70m",
  },
  ReplicaLagging: {
    fires: {
      'hangar_db_lag_seconds{app="shop",instance="a"}': "61x9",
      'pg_replication_lag{app="pg",instance="b"}': "59x9",
    },
    labels: 'app="shop",instance="a",severity="warning"',
    at: "7m",
  },
  DatabaseWithoutPrimary: {
    fires: {
      'hangar_db_is_primary{app="shop",instance="a"}': "1 0x9",
      'hangar_db_is_primary{app="shop",instance="b"}': "0x9",
      'hangar_db_is_primary{app="other",instance="c"}': "1x9",
      'hangar_db_is_primary{app="other",instance="d"}': "0x9",
    },
    labels: 'app="shop",severity="critical"',
    at: "4m",
  },
  HostLost: {
    fires: { 'svc_host_up{host="0001"}': "1 1 0", 'svc_host_up{host="0002"}': "1x3" },
    labels: 'host="0001",severity="critical"',
    at: "2m",
  },
  ManyErrors: {
    fires: {
      'svc_edge_http_responses_count{app="web",status="200"}': "0+90x20",
      'svc_edge_http_responses_count{app="web",status="503"}': "0+10x20",
      'svc_edge_http_responses_count{app="api",status="200"}': "0+96x20",
      'svc_edge_http_responses_count{app="api",status="500"}': "0+4x20",
    },
    labels: 'app="web",severity="critical"',
    at: "12m",
  },
};

suite("unit tests of rules, next to promtool", { skip }, () => {
  test("every default rule fires on what it is for, alone, and not on its neighbours", async () => {
    const dir = tempDir();
    writeFileSync(join(dir, "default.yml"), await printRuleFile(DEFAULT_GROUPS));
    const names = DEFAULT_GROUPS.flatMap(({ rules }) =>
      rules.map((rule) => (rule.kind === "alerting" ? rule.alert : "")),
    );
    assert.deepEqual(Object.keys(DEFAULT_CASES).sort(), names.sort(), "a rule without a case");
    const tests = Object.entries(DEFAULT_CASES).map(([name, { fires, labels, at }]) => ({
      name,
      interval: "1m",
      input_series: Object.entries(fires).map(([series, values]) => ({ series, values })),
      promql_expr_test: [
        {
          expr: 'ALERTS{alertstate="firing"}',
          eval_time: at,
          exp_samples: [{ labels: `ALERTS{alertname="${name}",alertstate="firing",${labels}}`, value: 1 }],
        },
      ],
    }));
    const file = join(dir, "default.test.yml");
    writeFileSync(file, JSON.stringify({ rule_files: ["default.yml"], evaluation_interval: "1m", tests }));
    for (const { status, stdout, stderr } of [theirs(file), ours(file)]) assert.equal(status, 0, stdout + stderr);
  });

  test("files pass and fail as with promtool", () => {
    const files = readdirSync(FILES).filter((file) => file.endsWith(".test.yml"));
    assert.ok(files.length >= 3);
    for (const file of files) {
      const path = join(FILES, file);
      const own = ours(path);
      const other = theirs(path);
      assert.equal(own.status === 0, other.status === 0, `${file}:\n${own.stdout}\n${other.stdout}${other.stderr}`);
    }
  });

  test("templates give the same texts for the same numbers", (t) => {
    const next = random(seed(t));
    const odd = [
      "0",
      "1",
      "-1",
      "0.5",
      "1e21",
      "1e-7",
      "1e6",
      "999999",
      "3661",
      "90061",
      "-3661",
      "1048576",
      "Inf",
      "NaN",
      // Between two of fewer digits: %.1f, %8.3f and %.4g round to the even one.
      "7.25",
      "-2.25",
      "0.0625",
      "100.05",
      "1000.5",
      "1000500",
      "-0",
    ];
    const values = [
      ...odd,
      ...Array.from({ length: 40 }, () => String((next() - 0.3) * 10 ** Math.round(next() * 14 - 5))),
    ];
    const series = values.map((value, at) => `{series: 'numbers{kind="k${at}"}', values: '${value} ${value}'}`);
    const path = join(tempDir(), "numbers.test.yml");
    writeFileSync(
      path,
      `rule_files: [${join(FILES, "rules.yml")}]
tests:
  - interval: 1m
    external_labels: {cluster: here}
    external_url: http://h.example/base
    input_series: [{series: 'up{instance="a", __value__="v"}', values: '0 0'}, ${series.join(", ")}]
    alert_rule_test: [{eval_time: 1m, alertname: Formats}]
`,
    );
    const own = texts(ours(path).stdout, /labels \{(.*?)\} annotations \{(.*)\}/g);
    const other = texts(theirs(path).stderr, /Labels:\{(.*?)\}\n\s+Annotations:\{(.*)\}/g);
    assert.equal(other.size, values.length);
    for (const [kind, wanted] of other)
      for (const [name, text] of wanted) {
        // A whole number beyond int64 is Go's overflow; the error names the same fault in other words.
        if (text.startsWith("<error")) assert.match(own.get(kind)?.get(name) ?? "", /^<error/);
        else if (!/-106751991167300d/.test(text)) assert.equal(own.get(kind)?.get(name), text, `${name} of ${kind}`);
      }
  });
});
