/** Images built from Dockerfiles by Debian's buildah, in real containers: what comes out, and what a hostile build cannot do. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { buildahMissing } from "#drivers/builds/builder-root.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { tempDir, until } from "../support.ts";
import { digestOf, tarOf } from "./build-context.ts";
import { command, type ForeignMachines, foreignMachines } from "./foreign-machines.ts";

/** Steps of a build take seconds each on a box that does other things too. */
const LONGEST_MS = 10 * 60_000;

interface Ended {
  id: string;
  state: string;
  digest: string | null;
  error: string | null;
  log: string;
}

/** A build of these files, begun. */
async function begin(
  machines: ForeignMachines,
  files: Record<string, string>,
  more: object = {},
  app = "web",
): Promise<string> {
  const contents = Object.values(files).map((text) => Buffer.from(text));
  const sent = await fetch(`${machines.base_url}/v1/apps/${app}/builds/files`, {
    method: "POST",
    headers: { authorization: `Bearer ${machines.token}`, "content-type": "application/x-tar" },
    body: new Uint8Array(tarOf(contents)),
  });
  assert.equal(sent.status, 200, await sent.text());
  const entries = Object.keys(files).map((path, i) => ({ path, sha256: digestOf(contents[i] ?? Buffer.alloc(0)) }));
  const made = await machines.ask(`POST /v1/apps/${app}/builds`, { body: { files: entries, ...more } });
  assert.equal(made.status, 201, made.text);
  return made.body.id as string;
}

async function ended(machines: ForeignMachines, id: string, app = "web"): Promise<Ended> {
  const look = async () => {
    const { body } = await machines.ask(`GET /v1/apps/${app}/builds/${id}`);
    return ["complete", "failed", "cancelled"].includes(body.state as string) ? body : undefined;
  };
  const build = await until(`build ${id} ends`, look, { every_ms: 100, limit_ms: LONGEST_MS });
  const { body } = await machines.ask(`GET /v1/apps/${app}/builds/${id}/logs`);
  return { ...(build as Omit<Ended, "log">), log: body.log as string };
}

const built = async (
  machines: ForeignMachines,
  files: Record<string, string>,
  more: object = {},
  app = "web",
): Promise<Ended> => await ended(machines, await begin(machines, files, more, app), app);

const SECRET = "hunter2-is-the-secret";
const STAGES = `
ARG BASE=busybox-base:1
FROM $BASE AS tools
ARG GREETING=hello
RUN --mount=type=secret,id=token test "$(cat /run/secrets/token)" = ${SECRET} && echo "secret: $(cat /run/secrets/token)"
RUN echo "$GREETING from a stage" > /greeting
FROM busybox-base:1
COPY --from=tools /greeting /greeting
COPY message /message
ENV KIND=built
CMD ["sleep", "1000"]
`;

const EVERYTHING = `# syntax=docker/dockerfile:1
ARG BASE=busybox-base
ARG TAG=1
FROM \${BASE}:\${TAG} AS base
ENV PORT=80 \\
    # a comment within
    NAME="a b"
SHELL ["/bin/sh", "-eux", "-c"]
WORKDIR /srv
WORKDIR deep

FROM base AS build
ARG BASE
COPY <<web.conf <<'raw' /etc/
port=$PORT base=\${NOTHING:-none}
web.conf
literal $PORT
raw
RUN <<EOF
mkdir /out
mv /etc/raw /out/0
case $- in *x*) echo shell -x > /out/1 ;; esac
EOF
RUN cat <<A > /out/2 && cat <<-"B" >> /out/2
one
A
	two
	B
RUN <<EOF
#!/bin/cat
program
EOF
RUN <<EOF
#!/bin/sh
echo program > /out/3
EOF
RUN pwd > /out/4
RUN --mount=type=cache,target=/cache echo 1 >> /cache/n && cat /cache/n > /out/5
RUN --mount=type=bind,from=base,source=/bin,target=/mnt test -e /mnt/busybox
RUN --mount=type=bind,target=/context test -e /context/src/a
RUN --mount=type=tmpfs,target=/scratch touch /scratch/x
RUN --mount=type=secret,id=token,required=true test -s /run/secrets/token
RUN touch /f && tar -cf /layer.tar -C / f

FROM base
LABEL one=1 two="2 3"
COPY --from=build /etc/web.conf /etc/
COPY --from=build --chown=7:8 --chmod=700 /out /out
COPY --from=busybox-base:1 --chown=7:8 --chmod=555 /bin/busybox /chmod
COPY ["dir ü", "/unicode/"]
COPY src /copied
COPY src/[a-z] nothing* /globbed/
RUN mkdir /copied/empty
HEALTHCHECK --interval=5s CMD true
STOPSIGNAL SIGINT
EXPOSE 80/tcp 90
VOLUME /data
USER 7:8
ENTRYPOINT ["/bin/sh", "-c"]
CMD ["echo to stdout by name > /dev/stdout; exec sleep 1000"]
`;

suite("image builds", { skip: buildahMissing() ?? realMachinesMissing() }, () => {
  const dir = tempDir();
  const ends: (() => unknown)[] = [];
  let machines: ForeignMachines;

  before(async () => {
    mkdirSync(join(dir, "root"));
    busyboxLayer(join(dir, "root"));
    command("tar", "-C", join(dir, "root"), "-cf", join(dir, "root.tar"), ".");
    machines = await foreignMachines({ after: (end) => void ends.push(end as () => unknown) });
    assert.equal((await machines.bring("busybox-base:1", join(dir, "root.tar"))).status, 201);
  });

  after(async () => {
    for (const end of ends) await end();
    rmSync(dir, { recursive: true, force: true });
  });

  test("a multi-stage Dockerfile becomes an image that a machine boots; the second build comes from the cache", async (t) => {
    const files = { Dockerfile: STAGES, message: "one\n" };
    const more = { args: { GREETING: "good morning" }, secrets: { token: SECRET } };
    const first = await built(machines, files, more);
    assert.equal(first.state, "complete", first.log);
    assert.match(first.digest ?? "", /^sha256:[0-9a-f]{64}$/);
    assert.doesNotMatch(first.log, new RegExp(SECRET), "the value of a secret is masked in the log");
    assert.match(first.log, /secret: \*\*\*/);
    const layersOf = async (image: string): Promise<string[]> =>
      (await machines.ask(`GET /v1/images/show?org_slug=personal&image=${image}`)).body.layer_list.map(
        (layer: { diff_id: string }) => layer.diff_id,
      );
    const of_base = await layersOf("busybox-base:1");
    assert.deepEqual((await layersOf("builds/web:latest")).slice(0, of_base.length), of_base, "no second copy of them");
    const id = await machines.run(t, { image: `builds/web:latest@${first.digest}` });
    assert.equal(
      await machines.sh(id, "cat /greeting /message; echo $KIND"),
      "good morning from a stage\none\nbuilt\n",
    );
    assert.equal(
      (await machines.sh(id, `grep -rl ${SECRET} / --exclude-dir=proc --exclude-dir=sys || true`)).trim(),
      "",
    );

    const again = await built(machines, files, more);
    assert.equal(again.digest, first.digest, "the same steps make the same image");
    assert.equal(
      again.log.match(/Using cache/g)?.length,
      first.log.match(/STEP \d+\/\d+: (RUN|COPY|ENV|CMD|ARG G)/g)?.length,
    );
    const changed = await built(machines, { ...files, message: "two\n" }, more);
    assert.notEqual(changed.digest, first.digest);
    assert.match(changed.log, /Using cache/);
    assert.doesNotMatch((await built(machines, files, { ...more, no_cache: true })).log, /Using cache/);
  });

  test("a Dockerfile as people write them: here-documents, SHELL, mounts, COPY in all its forms", async (t) => {
    const files = { Dockerfile: EVERYTHING, "dir ü/日本 語": "unicode\n", "src/a": "a\n", "src/sub/b": "b\n" };
    const more = { secrets: { token: SECRET } };
    const first = await built(machines, files, more);
    assert.equal(first.state, "complete", `${first.error} ${first.log}`);
    const again = await built(machines, files, more);
    assert.equal(again.digest, first.digest, "every step is cached");
    assert.doesNotMatch(again.log, /is not supported/);
    const image = `builds/web:latest@${first.digest}`;
    const { body: resolved } = await machines.ask(`GET /v1/apps/web/images/resolve?image=${encodeURIComponent(image)}`);
    assert.deepEqual(resolved.healthcheck, { test: ["CMD-SHELL", "true"], interval_ms: 5000 });
    const heir = await built(machines, { Dockerfile: "FROM builds/web:latest\nRUN true\n" });
    assert.equal(heir.state, "complete", heir.log);
    const inherited = await machines.ask("GET /v1/apps/web/images/resolve?image=builds/web:latest");
    assert.deepEqual(inherited.body.healthcheck, resolved.healthcheck);
    const id = await machines.run(t, { image: `builds/web:latest@${first.digest}` });
    const says = `cat /etc/web.conf /out/*; stat -c '%a %u:%g' /out /chmod; cat '/unicode/日本 語' /copied/sub/b; ls /copied/empty`;
    assert.equal(
      await machines.sh(id, says),
      "port=80 base=none\nliteral $PORT\nshell -x\none\ntwo\nprogram\n/srv/deep\n1\n755 7:8\n555 7:8\nunicode\nb\n",
    );
    const { body } = await machines.ask(`GET /v1/apps/web/machines/${id}/logs`);
    assert.match(JSON.stringify(body), /to stdout by name/, "also as another user than root");
  });

  test("a build cannot reach the host: no host paths, no platform API, no metadata address, no devices, no module", async () => {
    const probe = `
      set -u
      for path in ${process.cwd()} ${dir} /.svc/api /dev/sda /dev/loop0 /dev/mem; do [ ! -e "$path" ] || echo "SEES $path"; done
      wget -T 2 -q -O - http://169.254.169.254/ && echo "REACHES metadata"
      wget -T 2 -q -O - ${machines.base_url}/v1/health && echo "REACHES the API"
      mount -t proc proc /tmp && echo "MOUNTS"
      chroot / /bin/true && echo "CHROOTS"
      mknod /tmp/disk b 7 0 && echo "MAKES a device"
      echo 1 > /proc/sys/kernel/panic && echo "WRITES a sysctl"
      grep -c . /proc/1/root/etc/shadow && echo "READS shadow"
      env | grep -i token && echo "HAS a token"
      echo probed; grep CapEff /proc/self/status; cat /proc/self/uid_map`;
    const files = { Dockerfile: "FROM busybox-base:1\nCOPY probe /probe\nRUN sh /probe 2>&1\n", probe };
    const { state, log } = await built(machines, files);
    assert.equal(state, "complete", log);
    const output = log.slice(log.indexOf("RUN sh /probe"));
    assert.match(output, /probed/);
    assert.doesNotMatch(output, /SEES|REACHES|MOUNTS|CHROOTS|MAKES|WRITES|READS|HAS/);
    assert.doesNotMatch(output, /^ +0 +0 +4294967295$/m, "root of a build is nobody on the host");
  });

  test("a step that leaves its root file system finds nothing of another app's builds", async () => {
    await machines.ask("POST /v1/apps", { body: { app_name: "api" } });
    const marker = "of-another-app";
    const other = { Dockerfile: "FROM busybox-base:1\nCOPY marker /marker\n", marker };
    assert.equal((await built(machines, other, {}, "api")).state, "complete");
    // CVE-2024-1753: older versions of buildah follow links of images on their way to what a step mounts.
    const Dockerfile = `FROM busybox-base:1 AS evil
      RUN ln -s / /up
      FROM busybox-base:1
      RUN --mount=type=bind,from=evil,source=/up,target=/mnt,rw ls /mnt/var/lib/containers/storage/overlay/*/diff/marker || echo nothing found`;
    const { state, log } = await built(machines, { Dockerfile });
    assert.equal(state, "complete", log);
    assert.match(log, /^nothing found$/m);
  });

  test("a base image that cannot be pulled fails the build with its name and the reason", async () => {
    // A guarded address: the platform pulls, and never from a private network that was not allowed.
    const { state, error } = await built(machines, { Dockerfile: "FROM 127.0.0.2:9/base:1\nRUN true\n" });
    assert.equal(state, "failed");
    assert.match(error ?? "", /^base image 127\.0\.0\.2:9\/base:1: /);
  });

  test("a full disk fails the build, and the next build runs", async () => {
    const fill = "FROM busybox-base:1\nRUN dd if=/dev/zero of=/big bs=1M count=100000\n";
    const { state, log } = await built(machines, { Dockerfile: fill });
    assert.equal(state, "failed");
    assert.match(log, /No space left on device/);
    const next = await built(machines, { Dockerfile: "FROM busybox-base:1\nRUN echo well > /well\n" });
    assert.equal(next.state, "complete", next.log);
    const cache = join(machines.data_dir, "builds", "cache");
    const [disk = ""] = readdirSync(cache).filter((name) => name.endsWith(".ext4"));
    const used = 512 * statSync(join(cache, disk)).blocks;
    assert.ok(used < 1 << 30, `the host got its disk back: ${used} bytes are used`);
  });

  test("a fork bomb ends in the build's own limits, and the next build runs", async () => {
    const bomb = "FROM busybox-base:1\nRUN bomb() { bomb | bomb & }; bomb; sleep 5; exit 3\n";
    assert.equal((await built(machines, { Dockerfile: bomb })).state, "failed");
    const next = await built(machines, { Dockerfile: "FROM busybox-base:1\nRUN echo alive\n" });
    assert.equal(next.state, "complete", next.log);
  });

  test("a build that never ends is cancelled, and nothing of it is left", async () => {
    const id = await begin(machines, { Dockerfile: "FROM busybox-base:1\nRUN echo begun; sleep 100000\n" });
    await until("it runs", async () => {
      const { body } = await machines.ask(`GET /v1/apps/web/builds/${id}/logs`);
      return (body.log as string).includes("\nbegun") ? true : undefined;
    });
    assert.equal((await machines.ask(`POST /v1/apps/web/builds/${id}/cancel`)).body.state, "cancelled");
    assert.equal(spawnSync("pgrep", ["-f", "sleep 100000"], { encoding: "utf8" }).stdout, "");
    const mounts = readFileSync("/proc/self/mountinfo", "utf8");
    assert.ok(!mounts.includes(id) && !mounts.includes("/builds/cache/mnt/"));
  });

  test("bad requests are refused with a reason", async () => {
    const refused = async (body: object): Promise<string> => {
      const { status, text } = await machines.ask("POST /v1/apps/web/builds", { body });
      assert.ok(status >= 400 && status < 500, text);
      return text;
    };
    const sha256 = digestOf(Buffer.from("FROM busybox-base:1\nRUN echo alive\n"));
    assert.match(await refused({ files: [{ path: "../Dockerfile", sha256 }] }), /not a path inside/);
    assert.match(await refused({ files: [{ path: "Dockerfile", sha256: "0".repeat(64) }] }), /build_files_missing/);
    assert.match(await refused({ files: [{ path: "a", sha256 }] }), /no file Dockerfile/);
    const through = [
      { path: "a", link: "/etc" },
      { path: "a/passwd", sha256 },
      { path: "Dockerfile", sha256 },
    ];
    assert.match(await refused({ files: through }), /which is a link/);
    assert.match(await refused({ files: [{ path: "Dockerfile", sha256 }], platform: "linux/s390x" }), /linux\/s390x/);
    const failed = await built(machines, { Dockerfile: "FROM --platform=linux/s390x busybox-base:1\n" });
    assert.match(failed.error ?? "", /linux\/s390x cannot be built here/);
    assert.match((await built(machines, { Dockerfile: "FROM busybox-base:1\nRUN exit 7\n" })).error ?? "", /exit code/);
  });

  test("nothing but the cache is left on the disk", () => {
    const builds = join(machines.data_dir, "builds");
    assert.deepEqual(readdirSync(join(builds, "run")), []);
    assert.ok(existsSync(join(builds, "cache")));
  });
});
