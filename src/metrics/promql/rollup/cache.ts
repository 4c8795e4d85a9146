export interface RollupCache {
  size: number;
}
