/** Says what is left on a host whose machines are all destroyed while its process runs on: `hosts-left.ts DATA_DIR`. */
import { leftBehind, nodeIdOf } from "./leaks.ts";

const [data_dir = ""] = process.argv.slice(2);
const left = await leftBehind({ data_dir, node_id: nodeIdOf(data_dir) }, "driver is open");
process.stdout.write(`left ${JSON.stringify(left)}\n`);
