/** Thrown for a message that cannot be forwarded; `status` is the HTTP status for its sender. */
export class BadMessage extends Error {
  override readonly name = "BadMessage";
  readonly status: number;

  constructor(message: string, status = 400) {
    super(message);
    this.status = status;
  }
}
