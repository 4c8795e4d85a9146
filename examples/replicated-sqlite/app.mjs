/** A small application: `GET /notes` reads from any machine, `POST /notes` writes on the primary. */
import { createServer } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { primaryOf, replayWrites } from "./replay.mjs";

const dir = process.env.DB_DIR ?? "/data";
const path = join(dir, "notes.db");
const port = Number(process.env.PORT ?? 8080);

/** Opened for each request: on a replica the file may not be there yet, and the roles may change. */
function withDatabase(options, work) {
  const db = new DatabaseSync(path, { timeout: 5000, ...options });
  try {
    return work(db);
  } finally {
    db.close();
  }
}

function list() {
  try {
    return withDatabase({ readOnly: true }, (db) => db.prepare("SELECT text FROM notes ORDER BY id").all());
  } catch {
    return []; // The table does not exist yet.
  }
}

function add(text) {
  withDatabase({}, (db) => {
    db.exec("PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)");
    db.prepare("INSERT INTO notes (text) VALUES (?)").run(text);
  });
}

async function handle(request, response) {
  if (request.url === "/health") return response.end(primaryOf(dir) === undefined ? "primary\n" : "replica\n");
  if (request.url !== "/notes") return response.writeHead(404).end();
  if (request.method === "POST") {
    let text = "";
    for await (const part of request) text += part;
    add(text.slice(0, 1000));
    return response.writeHead(201).end();
  }
  response.writeHead(200, { "content-type": "application/json" }).end(`${JSON.stringify(list())}\n`);
}

const server = createServer(
  replayWrites(dir, (request, response) => {
    Promise.resolve(handle(request, response)).catch((error) => {
      // A replica that has just stopped being primary: its database is locked for writing.
      if (!response.headersSent) response.writeHead(503, { "retry-after": "1" });
      response.end(`${error.message}\n`);
    });
  }),
);
server.listen(port, () => process.stdout.write(`app: listens on ${server.address().port}\n`));
process.on("SIGTERM", () => server.close(() => process.exit(0)));
