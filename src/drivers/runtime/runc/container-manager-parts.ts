/** Dependencies of the container manager. */
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { ImageSource } from "#machines/runtime/image-source.ts";
import type { LocalApi } from "#machines/runtime/local-api.ts";
import type { PrivateNetwork } from "../../net/private-network.ts";
import type { Enclosing } from "./enclosure.ts";
import type { Layout } from "./layout.ts";
import type { Lxcfs } from "./lxcfs.ts";
import type { BundleBuilder } from "./rootfs/bundle-builder.ts";
import type { Timings } from "./timings.ts";
import type { UidBlocks } from "./uid-blocks.ts";

export interface ContainerManagerParts {
  layout: Layout;
  runc: string;
  clock: Clock;
  log: Log;
  images: ImageSource;
  network: PrivateNetwork;
  bundles: BundleBuilder;
  lxcfs: Lxcfs;
  /** Seals the memory of suspended machines. */
  memory_key: Uint8Array;
  uids: UidBlocks;
  /** The IPv4 block that other hosts have a route to. */
  ipv4_block?: number;
  local_api?: LocalApi;
  enclosing?: Enclosing | undefined;
  onTimings?: (id: string, timings: Timings) => void;
}
