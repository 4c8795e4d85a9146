export interface PageProps {
  /** What follows the page's own name in the address. */
  path: readonly string[];
  query: URLSearchParams;
}
