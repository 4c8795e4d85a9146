/** A place in a list's order: the values that the list is sorted by, which together belong to one item. */
export type PageKey = readonly (string | number)[];

/**
 * A page of a list: `limit` items after a key in its order. It is a key, not an offset, so that concurrent inserts and
 * deletes neither repeat nor hide items.
 */
export interface PageRequest<Key extends PageKey = PageKey> {
  after?: Key;
  limit: number;
}
