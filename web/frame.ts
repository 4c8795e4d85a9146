/** Draws once per frame however much comes. A tab that is not seen has no frames; then once a second. */
export function oncePerFrame(draw: () => void): { ask(): void; stop(): void } {
  let frame = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = (): void => {
    frame = 0;
    timer = undefined;
    draw();
  };
  return {
    ask() {
      if (frame !== 0 || timer !== undefined) return;
      if (document.hidden) timer = setTimeout(run, 1000);
      else frame = requestAnimationFrame(run);
    },
    stop() {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    },
  };
}
