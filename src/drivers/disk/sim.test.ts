import { diskSuite } from "#volumes/disk.suite.ts";
import { tempDir } from "../../../test/support.ts";
import { SimDisk } from "./sim.ts";

const SECTORS = { a: 10, b: 70 };

for (const encryption of [null, "sim"] as const) {
  diskSuite(`sim, ${encryption ? "encrypted" : "not encrypted"}`, {
    encryption,
    async open() {
      const dir = tempDir();
      const start = async (): Promise<SimDisk> => {
        const disk = new SimDisk(dir);
        await disk.start();
        return disk;
      };
      const disk = await start();
      return {
        disk,
        again: start,
        write: (volume, name, bytes) => disk.poke(volume, SECTORS[name], bytes),
        read: (volume, name) => disk.peek(volume, SECTORS[name], 2),
      };
    },
  });
}
