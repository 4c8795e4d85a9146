/** The key of a machine's metadata that has the labels of a sprite. */
export const SPRITE_LABELS_KEY = "sprite_labels";

/** The labels in such metadata: `prod, web`. */
export const labelsOf = (value: string): string[] => value.split(",").flatMap((label) => label.trim() || []);
