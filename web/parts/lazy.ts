/** Modules that are loaded when what they show is shown first. */
import type { ComponentType, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { div, h, p } from "../html.ts";
import { loading, problem } from "./basics.ts";

/** Pauses before a module is requested again. Each attempt may get one module further down its imports. */
const LOAD_AGAIN_MS = [100, 200, 400, 800, 1500, 2500, 4000];

/** Loads a module, with retries after a network change. */
export async function loadModule<Module>(load: () => Promise<Module>): Promise<Module> {
  for (const pause_ms of LOAD_AGAIN_MS) {
    try {
      return await load();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, pause_ms));
    }
  }
  return await load();
}

/** Why a module could not be loaded. */
export const notLoaded = (error: unknown): VNode =>
  div(problem(error), p("The platform may have been renewed: load the page again."));

/** A component whose module is loaded at its first use. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let known: ComponentType<Props> | undefined;
  return function Lazy(props: Props): VNode {
    const [view, setView] = useState<ComponentType<Props> | undefined>(() => known);
    const [error, setError] = useState<unknown>();
    useEffect(() => {
      if (view) return;
      loadModule(load).then((component) => {
        known = component;
        setView(() => component);
      }, setError);
    }, []);
    if (error !== undefined) return notLoaded(error);
    return view ? h(view, props) : loading();
  };
}
