/** The message cannot be passed on; `status` is what its sender is told. */
export class BadMessage extends Error {
  override readonly name = "BadMessage";
  readonly status: number;

  constructor(message: string, status = 400) {
    super(message);
    this.status = status;
  }
}
