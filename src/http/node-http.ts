/**
 * Node's `http` without what `import "node:http"` evaluates as well: an ES import reads every export, among them the
 * WebSocket client, whose library brings HTTP/2 and TLS. That is 13 MiB of a process that never uses them.
 */
export const { Agent, createServer, request } = process.getBuiltinModule("node:http");
