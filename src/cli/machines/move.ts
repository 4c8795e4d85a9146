import { textOption, type Verb } from "../verb.ts";
import { APP, findMachine, MACHINE, NONCE, readMachine } from "./find.ts";
import { andWait } from "./follow.ts";

export const machinesMove: Verb = {
  words: "machines move",
  summary: "Move a machine to another host: it restarts there with a new address and a clean root",
  arguments: [MACHINE],
  options: [APP, ["--host <id>", "target host (default: the one with most free capacity in its region)"], NONCE],
  completes: "machines",
  examples: ["hangar machines move $MACHINE"],
  async run(context, input) {
    const found = await findMachine(context, input);
    const { params, headers } = found;
    const before = await readMachine(context, found);
    const machine = await andWait(context, found, ["settled"], () =>
      context.client.call("POST /v1/apps/:app_name/machines/:machine_id/move", {
        params,
        headers,
        body: { host_id: textOption(input, "host") },
      }),
    );
    return {
      data: machine,
      text: `${machine.id} (${machine.name}) is ${machine.state} on ${machine.host}, before on ${before.host}`,
    };
  },
};
