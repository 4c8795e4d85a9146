/** The app that a repository belongs to. */
export interface GitApp {
  id: string;
  name: string;
  org_id: string;
}

/** One branch or tag that a push changes. All zeros: it does not exist before, or afterwards. */
export interface RefUpdate {
  before: string;
  after: string;
  ref: string;
}

export interface GitSettings {
  /** The branch whose pushes are deployed. */
  deploy_branch: string;
}

export const DEFAULT_BRANCH = "main";
export const isZero = (id: string): boolean => /^0+$/.test(id);
export const branchOf = (ref: string): string | undefined => /^refs\/heads\/(.+)$/s.exec(ref)?.[1];
