export interface PageProps {
  /** Path segments after the page's name. */
  path: readonly string[];
  query: URLSearchParams;
}
