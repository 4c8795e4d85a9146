/** Requests as FLAME's Fly backend makes them: in its first releases through Req, since then through Erlang's httpc. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { flyPlatform } from "./fly-listener.ts";

/** An Erlang term in Base64, as it is handed to the runner. */
const FLAME_PARENT = "g3QAAAAEdwNwaWRYdwhub2RlQGhvc3QAAABvAAAAAAAAAAB3A3JlZg==";
const guest = { cpu_kind: "performance", cpus: 2, memory_mb: 4096, gpu_kind: null };
const restart = { policy: "no" };

/** Bodies of `POST /v1/apps/{app}/machines`, by the way in which the releases make them. */
const RECORDED = {
  "a name in Base64, atoms as keys of env": {
    name: "web-flame-qX7+Zk/9mLwTsQvRbYc/",
    config: {
      image: "web:1",
      guest,
      auto_destroy: true,
      restart,
      env: { PHX_SERVER: "false", FLAME_PARENT },
      services: [],
    },
  },
  "a name in hexadecimal, with init, region and metadata": {
    name: "web-flame-9f86d081884c7d659a2f",
    region: "local",
    config: {
      image: "web:1",
      init: {},
      guest,
      auto_destroy: true,
      restart,
      env: { PHX_SERVER: "false", FLAME_PARENT, ERL_AFLAGS: "-proto_dist inet6_tcp", POOL_SIZE: "1" },
      services: [],
      metadata: { flame_parent_ip: "fdaa:0:1:a7b:1::2" },
    },
  },
  "no region known, a command and a swap of its own": {
    name: "web-flame-0a1b2c3d4e5f60718293",
    region: null,
    config: {
      image: "web:1",
      init: { cmd: ["/app/bin/server"], swap_size_mb: 512 },
      guest,
      auto_destroy: true,
      restart,
      env: { PHX_SERVER: "false", FLAME_PARENT },
      services: [],
      metadata: { flame_parent_ip: "fdaa:0:1:a7b:1::2", pool: "ffmpeg" },
    },
  },
};

suite("FLAME's requests", () => {
  for (const [how, body] of Object.entries(RECORDED))
    test(`a runner is made, waited for, and gone when it ends: ${how}`, async (t) => {
      const { flies, token } = await flyPlatform(t);
      await flies("POST /v1/apps", { body: { app_name: "web" } });
      const authorization = `Bearer ${token}`;
      const made = await flies("POST /v1/apps/web/machines", { body, authorization });
      // The backend takes 200 alone, and needs these three.
      assert.equal(made.status, 200, JSON.stringify(made.body));
      const { id, instance_id, private_ip } = made.body;
      for (const value of [id, instance_id, private_ip]) assert.match(value, /^[0-9a-zA-Z:]+$/);
      assert.match(made.body.name, /^web-flame-[a-z0-9-]+$/);
      const path = `/v1/apps/web/machines/${id}`;
      const up = await flies(`GET ${path}/wait?instance_id=${instance_id}&state=started&timeout=60`, { authorization });
      assert.equal(up.status, 200, JSON.stringify(up.body));
      const { config } = (await flies(`GET ${path}`, { authorization })).body;
      assert.equal(config.auto_destroy, true);
      assert.deepEqual(config.env, body.config.env);
      assert.equal(config.guest.gpu_kind, undefined);
      if ("metadata" in body.config)
        assert.deepEqual((await flies(`GET ${path}/metadata`, { authorization })).body, body.config.metadata);
      // A runner ends itself; here it is stopped, which is an end as well.
      await flies(`POST ${path}/stop`, { body: {}, authorization });
      const gone = await flies(`GET ${path}/wait?state=destroyed&instance_id=${instance_id}&timeout=60`, {
        authorization,
      });
      assert.equal(gone.status, 200, JSON.stringify(gone.body));
    });
});
