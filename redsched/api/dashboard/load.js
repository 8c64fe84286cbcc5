// What a page reads once: tried again by itself while the API or the store is away.

const AGAIN_MS = 5000;

/** Call `draw` with what `read` returns; return what ends it. `show` gets errors, and null once reading succeeds. */
export function load(show, read, draw) {
  let timer = 0;
  let isOver = false;
  const once = async () => {
    try {
      const found = await read();
      if (isOver) return;
      show(null);
      draw(found);
    } catch (error) {
      if (isOver) return;
      const isAway = error.status === 0 || error.status >= 500;
      show(error, isAway ? "Trying again every 5 seconds." : "");
      if (isAway) timer = setTimeout(once, AGAIN_MS);
    }
  };
  once();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
