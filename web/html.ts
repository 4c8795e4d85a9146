/** Elements as functions: `p({ class: "dim" }, "text")`. Typed like JSX, and needs no compiler. */
import { type ComponentChildren, type ComponentType, createElement, type JSX, type Key, type VNode } from "preact";

type Children = ComponentChildren;
type Attributes<Tag extends keyof JSX.IntrinsicElements> = Omit<JSX.IntrinsicElements[Tag], "children">;
type Element<Tag extends keyof JSX.IntrinsicElements> = {
  (attributes: Attributes<Tag>, ...children: Children[]): VNode;
  (...children: Children[]): VNode;
};

/** Preact nodes have no constructor, so only a plain object counts as attributes. */
const isAttributes = (first: unknown): first is Record<string, unknown> =>
  typeof first === "object" && first !== null && first.constructor === Object;

function element<Tag extends keyof JSX.IntrinsicElements>(tag: Tag): Element<Tag> {
  return ((first: unknown, ...rest: Children[]) =>
    isAttributes(first)
      ? createElement(tag as string, first, ...rest)
      : createElement(
          tag as string,
          null,
          ...(first === undefined ? [] : [first as Children]),
          ...rest,
        )) as Element<Tag>;
}

/** A component with its properties. */
export function h<Props>(view: ComponentType<Props>, props: Props & { key?: Key }, ...children: Children[]): VNode {
  return createElement(view as ComponentType<unknown>, props as never, ...children) as VNode;
}

export const a = element("a");
export const button = element("button");
export const caption = element("caption");
export const code = element("code");
export const datalist = element("datalist");
export const dd = element("dd");
export const dialog = element("dialog");
export const div = element("div");
export const dl = element("dl");
export const dt = element("dt");
export const figcaption = element("figcaption");
export const figure = element("figure");
export const fieldset = element("fieldset");
export const form = element("form");
export const h1 = element("h1");
export const h2 = element("h2");
export const h3 = element("h3");
export const header = element("header");
export const input = element("input");
export const kbd = element("kbd");
export const label = element("label");
export const legend = element("legend");
export const li = element("li");
export const main = element("main");
export const meter = element("meter");
export const nav = element("nav");
export const ol = element("ol");
export const option = element("option");
export const p = element("p");
export const path = element("path");
export const pre = element("pre");
export const section = element("section");
export const select = element("select");
export const span = element("span");
export const strong = element("strong");
export const svg = element("svg");
export const g = element("g");
export const line = element("line");
export const progress = element("progress");
export const rect = element("rect");
export const svgText = element("text");
export const title = element("title");
export const table = element("table");
export const tbody = element("tbody");
export const td = element("td");
export const textarea = element("textarea");
export const th = element("th");
export const thead = element("thead");
export const time = element("time");
export const tr = element("tr");
export const ul = element("ul");
