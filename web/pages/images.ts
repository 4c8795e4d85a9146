import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { code, div, form, h, input, p, span } from "../html.ts";
import { Action, Ago, block, empty, Field, pageHead, sheet, showMessage, when } from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { bytes, plural } from "../parts/format.ts";
import { call, isFull, isReadOnly, org, session } from "../session.ts";
import { ImageUpload } from "./image-upload.ts";

/** Images and their disk usage. */
export function Page(): VNode {
  const now = useCell(session);
  const readOnly = isReadOnly(now);
  const answer = useShared((signal) => call("GET /v1/images", { query: { org_slug: org() }, signal }), [org()]);
  const remove = (image: string) => async (): Promise<void> => {
    if (!(await confirmed(`Remove ${image}?`, "Machines that use it keep their layers.", "Remove it"))) return;
    await call("DELETE /v1/images", { query: { image, org_slug: org() } });
    answer.again();
  };
  const clean = async (): Promise<void> => {
    const found = await call("POST /v1/images/gc", { body: { dry_run: true } });
    if (found.bytes === 0) return showMessage("Everything here is needed.");
    const text = `${plural(found.images.length, "image")} and ${plural(found.layers.length, "layer")} that no machine uses.`;
    if (!(await confirmed(`Give back ${bytes(found.bytes)}?`, text, "Give it back"))) return;
    await call("POST /v1/images/gc", { body: {} });
    showMessage(`${bytes(found.bytes)} given back.`);
    answer.again();
  };
  return div(
    pageHead("Images", isFull(now) ? h(Action, { name: "Clean up unused images", work: clean }) : null),
    readOnly ? null : h(Pull, { onDone: answer.again }),
    readOnly ? null : h(ImageUpload, { onDone: answer.again }),
    when(answer, ({ images }) =>
      images.length === 0
        ? empty(
            "No images yet.",
            p("A machine's image is pulled when it is first needed. One from a file or a folder:"),
            block("hangar images import shop/web:1 ./rootfs"),
          )
        : sheet(
            "Images",
            ["image", "from", "size", "layers", "used by", "last used", ...(readOnly ? [] : ["remove"])],
            images.map((image) => ({
              key: `${image.owner} ${image.name}`,
              cells: [
                span(
                  code({ title: image.digest }, image.name),
                  image.complete ? null : span({ class: "tag" }, "not all here"),
                ),
                image.source,
                bytes(image.bytes),
                String(image.layers),
                image.machines > 0
                  ? plural(image.machines, "machine")
                  : span({ class: "dim" }, "nothing: can be removed"),
                h(Ago, { ms: Date.parse(image.used_at) }),
                ...(readOnly ? [] : [h(Action, { name: "Remove", work: remove(image.name) })]),
              ],
            })),
          ),
    ),
  );
}

function Pull({ onDone }: { onDone: () => void }): VNode {
  const [image, setImage] = useState("");
  const pull = async (): Promise<void> => {
    const got = await call("POST /v1/images/pull", {
      body: { image: image.trim(), org_slug: org() },
      headers: { accept: "application/json" },
    });
    showMessage(`${got.name} is here, ${bytes(got.bytes)}.`);
    setImage("");
    onDone();
  };
  return form(
    { class: "row-form", onSubmit: (event) => event.preventDefault() },
    h(Field, {
      name: "Pull from a registry",
      children: (id) =>
        input({
          id,
          type: "text",
          size: 32,
          autocomplete: "off",
          placeholder: "registry.example/shop/web:1",
          value: image,
          onInput: (event) => setImage(event.currentTarget.value),
        }),
    }),
    h(Action, { name: "Pull", class: "primary", disabled: image.trim() === "", work: pull }),
  );
}
