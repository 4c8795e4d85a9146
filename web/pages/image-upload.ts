/** An image from a file: dropped or chosen, sent with its progress. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { ClientError } from "#client/client.ts";
import { button, div, form, input, label, p, progress, span } from "../html.ts";
import { problem, showMessage } from "../parts/basics.ts";
import { textField } from "../parts/controls.ts";
import { bytes } from "../parts/format.ts";
import { org, session } from "../session.ts";

interface Sending {
  sent: number;
  total: number;
  stop: () => void;
}

export function ImageUpload({ onDone }: { onDone: () => void }): VNode {
  const [file, setFile] = useState<File>();
  const [name, setName] = useState("");
  const [over, setOver] = useState(false);
  const [sending, setSending] = useState<Sending>();
  const [error, setError] = useState<unknown>();
  const choose = (chosen: File | undefined): void => {
    if (!chosen) return;
    setFile(chosen);
    setError(undefined);
    if (name === "") setName(nameOf(chosen.name));
  };
  const send = (event: Event): void => {
    event.preventDefault();
    if (!file || name.trim() === "" || sending) return;
    setError(undefined);
    upload(file, name.trim(), setSending)
      .then(
        () => {
          showMessage(`${name.trim()} is here.`);
          setFile(undefined);
          setName("");
          onDone();
        },
        (thrown: unknown) => setError(thrown),
      )
      .finally(() => setSending(undefined));
  };
  return form(
    {
      class: `drop ${over ? "over" : ""}`,
      "aria-label": "Upload an image",
      onSubmit: send,
      onDragOver: (event) => {
        event.preventDefault();
        setOver(true);
      },
      onDragLeave: () => setOver(false),
      onDrop: (event) => {
        event.preventDefault();
        setOver(false);
        choose(event.dataTransfer?.files[0]);
      },
    },
    label(
      { class: "pick" },
      span("Drop a tar here, or choose one: "),
      span({ class: "dim" }, "an OCI layout, what `docker save` writes, or a root file system; also compressed"),
      input({
        type: "file",
        "aria-label": "File of an image",
        onChange: (event) => choose(event.currentTarget.files?.[0]),
      }),
    ),
    file
      ? div(
          { class: "row-form" },
          textField("Name of the image", name, setName),
          p(`${file.name}, ${bytes(file.size)}`),
        )
      : null,
    sending
      ? p(
          progress({ value: sending.sent, max: sending.total, "aria-label": "Sent" }),
          span(
            { class: "dim", role: "status" },
            ` ${bytes(sending.sent)} of ${bytes(sending.total)}${sending.sent === sending.total ? ", unpacking" : ""} `,
          ),
          button({ type: "button", onClick: sending.stop }, "Cancel"),
        )
      : file
        ? p(button({ type: "submit", class: "primary", disabled: name.trim() === "" }, "Upload"))
        : null,
    error === undefined ? null : problem(error),
  );
}

/** `shop-web-1.2.tar.gz` as a name. */
const nameOf = (file: string): string => file.replace(/(\.tar)?(\.(gz|zst|tgz))?$|\.tgz$/i, "").toLowerCase();

/** Uses XMLHttpRequest, because fetch reports no upload progress. */
function upload(file: File, name: string, onProgress: (sending: Sending) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const query = new URLSearchParams({ name, org_slug: org() });
    const report = (sent: number): void => onProgress({ sent, total: file.size, stop: () => request.abort() });
    request.open("POST", `/v1/images/import?${query}`);
    request.setRequestHeader("authorization", `Bearer ${session.value?.token ?? ""}`);
    request.setRequestHeader("content-type", "application/x-tar");
    request.upload.addEventListener("progress", ({ loaded }) => report(loaded));
    request.addEventListener("load", () => (request.status === 201 ? resolve() : reject(refusal(request))));
    request.addEventListener("error", () =>
      reject(new ClientError(0, { error: "the connection was lost; try again" })),
    );
    request.addEventListener("abort", () => reject(new ClientError(0, { error: "cancelled" })));
    report(0);
    request.send(file);
  });
}

function refusal({ status, responseText }: XMLHttpRequest): ClientError {
  try {
    return new ClientError(status, JSON.parse(responseText) as { error: string });
  } catch {
    return new ClientError(status, { error: responseText.slice(0, 500) });
  }
}
