/** The hardware that a machine, or a volume on behalf of one, may request from its host. */
import { acts, refused, warned } from "#http/field-support.ts";
import { Type } from "#http/schema.ts";

const text = Type.String();
const NO_GPU = "no host has a GPU";

export const Hardware = {
  cpu_kind: acts(
    Type.Union([Type.Literal("shared"), Type.Literal("performance")]),
    "Shared or dedicated CPUs; shared by default.",
  ),
  gpu_kind: refused(text, NO_GPU),
  // Without a kind, clients send the default of one GPU, or none.
  gpus: refused(Type.Integer({ minimum: 0, maximum: 64 }), NO_GPU, [1]),
  host_dedication_id: refused(text, "no host is dedicated"),
  kernel_args: warned(Type.Array(text), "machines share the kernel of their host"),
};
