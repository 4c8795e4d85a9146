/** What a deployment changes: the image, back to an earlier release, or the number and size of machines. */
export interface DeploymentInput {
  action: "deploy" | "rollback" | "scale";
  image?: string | undefined;
  port?: number | undefined;
  strategy?: string | undefined;
  /** The branch whose preview app is deployed, in place of the app. */
  preview?: string | undefined;
  version?: number | undefined;
  counts?: Record<string, number> | undefined;
  memory_mb?: number | undefined;
  cpus?: number | undefined;
  message?: string | undefined;
}

/** The words of the `hangar` command that does the same. */
export function commandOf(app_name: string, input: DeploymentInput): string[] {
  const why = input.message ? [`--message=${input.message}`] : [];
  return [...WORDS[input.action](input), `--app=${app_name}`, ...(input.action === "scale" ? [] : why)];
}

const WORDS: Record<DeploymentInput["action"], (input: DeploymentInput) => string[]> = {
  deploy: ({ image = "", port, strategy, preview }) => [
    "deploy",
    `--image=${image}`,
    ...(port === undefined ? [] : [`--port=${port}`]),
    ...(strategy === undefined ? [] : [`--strategy=${strategy}`]),
    ...(preview === undefined ? [] : [`--preview=${preview}`]),
  ],
  rollback: ({ version }) => ["rollback", ...(version === undefined ? [] : [String(version)])],
  scale: ({ counts = {}, memory_mb, cpus }) => [
    "scale",
    ...Object.entries(counts).map(([group, count]) => `${group}=${count}`),
    ...(memory_mb === undefined ? [] : ["memory", `${memory_mb}MB`]),
    ...(cpus === undefined ? [] : ["cpus", String(cpus)]),
  ],
};
