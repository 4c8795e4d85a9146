export type Kind = "apps" | "orgs" | "machines" | "volumes" | "contexts";
