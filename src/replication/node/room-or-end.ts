import type { ServerResponse } from "node:http";

/** Resolves when the connection has drained or closed. */
export async function roomOrEnd(response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  await new Promise<void>((done) => {
    const finish = (): void => {
      response.off("drain", finish);
      response.off("close", finish);
      done();
    };
    response.on("drain", finish);
    response.on("close", finish);
  });
}
