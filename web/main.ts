/** The dashboard: begins here. Sign in, or the frame with the menu and the page that the address names. */
import { type ComponentType, render, type VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useCell } from "./cell.ts";
import { Follower, fleet } from "./fleet.ts";
import { a, button, div, h, header, input, kbd, label, main, nav, option, p, select, span } from "./html.ts";
import type { PageProps } from "./page-props.ts";
import { PAGES, type Page } from "./pages.ts";
import { Palette, palette } from "./palette.ts";
import { empty, loading, pageHead, Toasts } from "./parts/basics.ts";
import { Questions } from "./parts/dialog.ts";
import { icon } from "./parts/icon.ts";
import { loadModule, notLoaded } from "./parts/lazy.ts";
import { NotReadyBanner, StaleNotice } from "./parts/readiness.ts";
import { isStale, readiness, watchReadiness } from "./readiness.ts";
import { place, to } from "./router.ts";
import { chooseOrg, isReadOnly, resume, type Session, session, signOut } from "./session.ts";
import { SignIn } from "./sign-in.ts";
import { apply } from "./theme.ts";

function App(): VNode {
  const now = useCell(session);
  if (!now) return h(SignIn, {});
  return h(Frame, { now, key: now.org_slug });
}

function Frame({ now }: { now: Session }): VNode {
  const { path } = useCell(place);
  const page = path[0] === undefined ? PAGES[0] : PAGES.find(({ id }) => id === path[0]);
  useEffect(() => {
    const follower = new Follower(now.org_slug);
    follower.start();
    return () => follower.stop();
  }, [now.org_slug]);
  useEffect(watchReadiness, []);
  useEffect(() => {
    document.title = `${page?.title ?? "Not found"} · Hangar`;
  }, [page]);
  return div(
    { class: "frame" },
    a({ class: "skip", href: "#content", onClick: skip }, "Skip to the page"),
    h(Side, { now, page }),
    main(
      { id: "content", tabIndex: -1 },
      h(NotReadyBanner, {}),
      page ? h(Shown, { page, key: page.id }) : h(NotFound, {}),
    ),
    h(Palette, {}),
    h(Questions, {}),
    h(Toasts, {}),
  );
}

function NotFound(): VNode {
  const { path } = useCell(place);
  return div(
    pageHead("Not found"),
    empty(
      `There is no page ${path.join("/")}.`,
      p(a({ href: "#/" }, "Overview"), ", or find it with ", kbd("Ctrl K"), "."),
    ),
  );
}

/** The URL fragment is a route, so the skip link scrolls by script. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Side({ now, page }: { now: Session; page: Page | undefined }): VNode {
  const [open, setOpen] = useState(false);
  return header(
    { class: `side ${open ? "open" : ""}` },
    div(
      { class: "brand" },
      a({ href: "#/", class: "logo" }, span({ class: "mark", "aria-hidden": "true" }), "Hangar"),
      h(LinkState, {}),
      button(
        {
          type: "button",
          class: "quiet menu",
          "aria-label": "Menu",
          "aria-expanded": open,
          onClick: () => setOpen(!open),
        },
        icon(open ? "close" : "menu"),
      ),
    ),
    h(StaleNotice, {}),
    div(
      { class: "drawer" },
      h(OrgChoice, { now }),
      button(
        { type: "button", class: "find", onClick: () => palette.set(true) },
        icon("search"),
        span("Find…"),
        kbd("Ctrl K"),
      ),
      nav(
        { "aria-label": "Pages" },
        ...PAGES.map(({ id, title, icon: name }) =>
          a(
            {
              href: to(id),
              key: id,
              "aria-current": id === page?.id ? "page" : undefined,
              onClick: () => setOpen(false),
            },
            icon(name),
            title,
          ),
        ),
      ),
      h(Who, { now }),
    ),
  );
}

function OrgChoice({ now }: { now: Session }): VNode {
  return label(
    { class: "org" },
    span("Organization"),
    now.organizations.length < 2
      ? input({ type: "text", readOnly: true, value: now.org_slug })
      : select(
          { value: now.org_slug, onChange: (event) => chooseOrg(event.currentTarget.value) },
          ...now.organizations.map(({ slug, name }) => option({ value: slug, key: slug }, name)),
        ),
  );
}

function Who({ now }: { now: Session }): VNode {
  return div(
    { class: "who" },
    span(
      { title: now.rights.join("\n") },
      now.token_name,
      isReadOnly(now) ? span({ class: "tag" }, "read only") : null,
    ),
    button(
      { type: "button", class: "quiet", "aria-label": "Sign out", title: "Sign out", onClick: () => signOut() },
      icon("exit"),
    ),
  );
}

const LINKS = { connecting: "connecting", live: "live", broken: "no connection", stale: "out of date" } as const;

/** Whether the data shown is current. */
function LinkState(): VNode {
  const stream = useCell(fleet).link;
  const stale = isStale(useCell(readiness));
  const link = stream === "live" && stale ? "stale" : stream;
  return span({ class: `link ${link}`, role: "status", title: `Events: ${LINKS[link]}` }, LINKS[link]);
}

const loaded = new Map<string, ComponentType<PageProps>>();

function Shown({ page }: { page: Page }): VNode {
  const { path, query } = useCell(place);
  const [view, setView] = useState<ComponentType<PageProps> | undefined>(() => loaded.get(page.id));
  const [error, setError] = useState<unknown>();
  const first = useRef(true);
  useEffect(() => {
    loadModule(page.load).then(
      (module) => {
        loaded.set(page.id, module.Page);
        setView(() => module.Page);
      },
      (thrown: unknown) => setError(thrown),
    );
  }, [page]);
  useEffect(() => {
    // A new page starts at its top and takes the focus, for screen readers; the first one does not.
    if (!first.current) document.getElementById("content")?.focus({ preventScroll: true });
    first.current = false;
    scrollTo(0, 0);
  }, [path.join("/")]);
  if (error !== undefined) return notLoaded(error);
  return view ? h(view, { path: path.slice(1), query }) : loading();
}

async function begin(): Promise<void> {
  apply();
  const root = document.getElementById("app");
  if (!root) return;
  await resume();
  render(h(App, {}), root);
}

// A sign-in link may be opened in an existing tab.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#/sign-in/")) void resume();
});

void begin();
