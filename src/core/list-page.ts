/** A place in a list's order: the values that the list is sorted by, which together belong to one item. */
export type PageKey = readonly (string | number)[];

/**
 * A part of a list: as many as `limit`, after a place in its order. The place is a key, not a count, so that what is
 * added or removed meanwhile neither repeats nor hides anything else.
 */
export interface PageRequest<Key extends PageKey = PageKey> {
  after?: Key;
  limit: number;
}
