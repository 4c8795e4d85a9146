/** Rule files of organizations and apps, and the state of their rules. */
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Dialect } from "#metrics/promql/ast.ts";
import { DEFAULT_FILE, DEFAULT_GROUPS } from "./default-rules.ts";
import { ALERT_LIMITS } from "./limits.ts";
import { groupsOf, type RuleRunner, type RunningGroup } from "./rule-runner.ts";
import { printRuleFile } from "./rules/print.ts";
import { restoredStates } from "./rules/state.ts";
import type { Alert, Rule, RuleGroup } from "./rules/types.ts";
import type { AlertStore, StoredRuleFile } from "./store.ts";

interface Parts {
  store: AlertStore;
  runner: Pick<RuleRunner, "groups" | "reload">;
  clock: Clock;
}

export interface RuleFileSummary {
  name: string;
  app_name: string | null;
  dialect: Dialect;
  built_in: boolean;
  groups: number;
  rules: number;
  updated_at: number;
}

export interface ActiveAlert extends Alert {
  file: string;
  group: string;
}

const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;

/** The name of an app's own rule file. Users cannot choose such a name. */
export const appFileName = (app_name: string): string => `app:${app_name}`;

export class AlertService {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async list(org_id: string): Promise<RuleFileSummary[]> {
    const files = await this.#parts.store.ruleFiles(org_id);
    const own = await Promise.all(files.map(async (file) => summary(file, await groupsIn(file))));
    const given = files.some(({ name }) => name === DEFAULT_FILE) ? [] : [summary(builtIn(org_id, ""), DEFAULT_GROUPS)];
    return [...given, ...own].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async get(org_id: string, name: string): Promise<RuleFileSummary & { content: string }> {
    const found = await this.#parts.store.findRuleFile(org_id, name);
    if (found) return { ...summary(found, await groupsIn(found)), content: found.content };
    if (name !== DEFAULT_FILE) fail("not_found", `there is no rule file ${JSON.stringify(name)}`);
    const content = await printRuleFile(DEFAULT_GROUPS);
    return { ...summary(builtIn(org_id, content), DEFAULT_GROUPS), content };
  }

  async put(
    org_id: string,
    { name, content, dialect, app_id }: { name: string; content: string; dialect: Dialect; app_id: string | null },
  ): Promise<RuleFileSummary> {
    const { store, clock, runner } = this.#parts;
    if (app_id === null) checkName(name);
    const { parseRuleFile } = await import("./rules/rule-file.ts");
    const { groups, problems } = await parseRuleFile(content, dialect);
    if (problems.length > 0) refuse(problems);
    const file = { org_id, name, app_id, dialect, content, updated_at: await this.#version(org_id, name) };
    if (!(await store.putRuleFile(file, ALERT_LIMITS.rule_files_per_org)))
      fail(
        "limit_reached",
        `an organization has at most ${ALERT_LIMITS.rule_files_per_org} rule files (limit rule_files_per_org)`,
      );
    runner.reload();
    return summary({ ...file, updated_at: clock.now() }, groups);
  }

  /** Rises with every change, also within one millisecond. */
  async #version(org_id: string, name: string): Promise<number> {
    const before = await this.#parts.store.findRuleFile(org_id, name);
    return Math.max(this.#parts.clock.now(), (before?.updated_at ?? 0) + 1);
  }

  async delete(org_id: string, name: string): Promise<void> {
    const { store, runner } = this.#parts;
    if (!(await store.deleteRuleFile(org_id, name))) {
      const hint = "the built-in rules are replaced by a rule file of that name; one without groups switches them off";
      fail("not_found", `there is no rule file ${JSON.stringify(name)}`, name === DEFAULT_FILE ? { hint } : {});
    }
    runner.reload();
  }

  /** All groups with the states of their rules: those of this process, or those stored by the one that evaluates them. */
  async groups(org_id: string): Promise<readonly RunningGroup[]> {
    const here = this.#parts.runner.groups(org_id);
    if (here) return here;
    const { store } = this.#parts;
    const stored = await store.states(org_id);
    return (await groupsOf(await store.ruleFiles(org_id))).map(({ file, app_name, group }) => {
      const state = stored.find((one) => one.file === file && one.group_name === group.name)?.state;
      return { file, app_name, group, states: restoredStates(group, state) };
    });
  }

  /** Pending and firing alerts; with `resolved`, also those that ended a short time ago. */
  async alerts(org_id: string, { resolved }: { resolved: boolean }): Promise<ActiveAlert[]> {
    return (await this.groups(org_id)).flatMap(({ file, group, states }) =>
      states.flatMap(({ active }) =>
        [...active.values()]
          .filter(({ state }) => resolved || state !== "inactive")
          .map((alert) => ({ ...alert, file, group: group.name })),
      ),
    );
  }
}

function checkName(name: string): void {
  if (NAME.test(name)) return;
  fail("invalid_request", `${JSON.stringify(name)} is no name of a rule file`, {
    details: [
      {
        path: "path.rule_file",
        problem: "is not a valid name",
        allowed: "1 to 63 lower-case letters, digits, dots, dashes and underscores, beginning with a letter or digit",
      },
    ],
  });
}

function refuse(problems: readonly string[]): never {
  fail("invalid_request", `the rule file cannot be used: ${problems[0]}`, {
    details: problems.map((problem) => ({ path: "body.content", problem })),
    hint: "`hangar alerts test` runs unit tests of rules before they are applied",
  });
}

async function groupsIn({ content, dialect }: Pick<StoredRuleFile, "content" | "dialect">): Promise<RuleGroup[]> {
  const { parseRuleFile } = await import("./rules/rule-file.ts");
  return (await parseRuleFile(content, dialect)).groups;
}

const builtIn = (org_id: string, content: string): StoredRuleFile => ({
  org_id,
  name: DEFAULT_FILE,
  app_id: null,
  app_name: null,
  dialect: "promql",
  content,
  updated_at: 0,
});

const summary = (
  { name, dialect, updated_at, ...rest }: Omit<StoredRuleFile, "app_name" | "content"> & { app_name?: string | null },
  groups: readonly RuleGroup[],
): RuleFileSummary => ({
  name,
  app_name: rest.app_name ?? null,
  dialect,
  built_in: updated_at === 0,
  groups: groups.length,
  rules: groups.flatMap(({ rules }): readonly Rule[] => rules).length,
  updated_at,
});
