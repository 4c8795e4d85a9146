import { SCRAPE_LIMITS } from "./limits.ts";

/** A failed scrape; the message is for the target's owner. */
export class ScrapeFailure extends Error {
  override readonly name = "ScrapeFailure";
  /** The response exceeded the size limit. */
  readonly too_large: boolean;

  constructor(message: string, too_large = false) {
    super(message);
    this.too_large = too_large;
  }
}

export const noRoom = (): ScrapeFailure =>
  new ScrapeFailure("too much is being received from the organization's targets at once (bytes_in_flight)");

export function tooLarge(): ScrapeFailure {
  const most = SCRAPE_LIMITS.body_bytes / 2 ** 20;
  return new ScrapeFailure(`its response is larger than ${most} MB (body_bytes) and was dropped`, true);
}
