/** Sprites put together: part of platform.ts. */
import type { AppService } from "#apps/service.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Settings } from "#core/settings.ts";
import type { Guard } from "#http/access.ts";
import type { Row } from "#http/route.ts";
import type { RouteParts } from "#machines/api/routing.ts";
import type { MachineModule } from "#machines/module.ts";
import type { ProxyModule } from "#proxy/module.ts";
import { execRoutes } from "#sprites/exec/routes.ts";
import { ExecSessions } from "#sprites/exec/sessions.ts";
import { FileHelper } from "#sprites/files/helper.ts";
import { fileRoutes } from "#sprites/files/routes.ts";
import { portRoutes } from "#sprites/ports/routes.ts";
import { spriteRoutes } from "#sprites/routes.ts";
import { SpriteService } from "#sprites/service.ts";
import { Upkeep } from "#sprites/upkeep.ts";
import { urlPlace } from "#sprites/urls/names.ts";
import { SpriteUrls } from "#sprites/urls/urls.ts";
import { Watches } from "#sprites/watches.ts";
import type { Database } from "#stores/database.ts";
import { sqlSpriteStore } from "#stores/sql/sprites.ts";

interface SpriteNeeds {
  apps: AppService;
  machine_parts: RouteParts;
  bus: MachineModule["bus"];
  is_shared: boolean;
  proxy: Pick<ProxyModule, "serveOwn">;
  guard: Guard;
  clock: Clock;
  log: Log;
}

interface SpritesPart {
  rows: Row[];
  start(): void;
  close(): Promise<void>;
}

export function openSprites(database: Database, settings: Settings, needs: SpriteNeeds): SpritesPart {
  const { machine_parts, bus, is_shared, guard, clock } = needs;
  const store = sqlSpriteStore(database);
  const sprites = new SpriteService({ ...machine_parts, ...needs, store });
  const sessions = new ExecSessions({ ...machine_parts, sprites });
  const watches = new Watches();
  const files = new FileHelper({ ...machine_parts, sprites });
  const upkeep = new Upkeep({ ...machine_parts, ...needs, store, sprites, sleeps: !is_shared });
  const url_place = urlPlace(settings.proxy.domain, settings.sprite_url_port);
  const urls = new SpriteUrls({ ...machine_parts, ...needs, store, sprites, edge: needs.proxy }, url_place);
  const shown = { image: settings.sprite_image, url_place, onCreate: () => urls.open() };
  return {
    rows: [
      ...spriteRoutes({ sprites, store, bus, clock, ...shown }),
      ...execRoutes({ sprites, sessions, guard, clock }),
      ...fileRoutes({ sprites, helper: files, watches, guard, clock }),
      ...portRoutes({ ...machine_parts, sprites, watches }),
    ],
    start() {
      // A host has no API, and finishes nobody's requests.
      if (settings.role === "host") return;
      upkeep.start();
      urls.start();
    },
    async close() {
      sessions.close();
      await urls.close();
      await upkeep.close();
    },
  };
}
