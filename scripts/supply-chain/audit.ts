/** What `npm audit` says about the packages that are passed on. */

/** The part of its answer that decides. */
interface AuditAnswer {
  vulnerabilities?: Record<
    string,
    { severity: string; range?: string; via?: (string | { title?: string; url?: string })[] }
  >;
  metadata?: { vulnerabilities?: Record<string, number> };
  message?: string;
}

export type Verdict = { verdict: "clean" | "not answered"; words: string } | { verdict: "vulnerable"; words: string };

const SEVERE = new Set(["high", "critical"]);

/**
 * A registry that does not answer is no finding, but it is reported, so that it is not taken for a clean result either.
 */
export function judgeAudit(output: string): Verdict {
  const answer = parsed(output);
  if (!answer?.metadata?.vulnerabilities || !answer.vulnerabilities) {
    const why = answer?.message ?? (output.trim() === "" ? "nothing was answered" : "the answer is not an audit");
    return {
      verdict: "not answered",
      words: `the registry did not audit the packages (${why}); they were not checked`,
    };
  }
  const severe = Object.entries(answer.vulnerabilities).filter(([, { severity }]) => SEVERE.has(severity));
  const all = Object.keys(answer.vulnerabilities).length;
  if (severe.length === 0) return { verdict: "clean", words: `no high or critical vulnerability; ${all} lesser` };
  const lines = severe.map(([name, { severity, range = "", via = [] }]) => {
    const titles = via.map((one) =>
      typeof one === "string" ? `through ${one}` : [one.title, one.url].filter(Boolean).join(" "),
    );
    return `${name} ${range} (${severity}): ${titles.join("; ")}`;
  });
  return { verdict: "vulnerable", words: lines.join("\n") };
}

function parsed(output: string): AuditAnswer | undefined {
  try {
    return JSON.parse(output) as AuditAnswer;
  } catch {
    return undefined;
  }
}
