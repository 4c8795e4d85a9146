/** How much a mount lets its volume grow at a time. */
interface GrowthRule {
  add_size_gb?: number;
  add_size_percent?: number;
  min_add_size_gb?: number;
}

/** GB to add to a volume of this size: the largest step of the mount; 0 when it has none. */
export function growthStep(rule: GrowthRule, size_gb: number): number {
  const { add_size_gb = 0, add_size_percent = 0, min_add_size_gb = 0 } = rule;
  if (add_size_gb === 0 && add_size_percent === 0) return 0;
  return Math.max(add_size_gb, Math.ceil((size_gb * add_size_percent) / 100), min_add_size_gb);
}
