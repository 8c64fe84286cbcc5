// What a page reads: once, or again and again; tried again by itself while the API or the store is away.

export const AGAIN_MS = 5000;
export const AGAIN = `Trying again every ${AGAIN_MS / 1000} seconds.`;

/** Return whether an error passes by itself: the API or the store is away, or too much is in progress. */
export function passes({ status }) {
  return [0, 408, 429].includes(status) || status >= 500;
}

/**
 * Call `draw` with what `read` returns; return what ends it. `show` gets errors, and null once reading succeeds.
 * With `isRepeated`, it is read every 5 seconds, also after errors that do not pass by themselves. `clear` takes back
 * that the page is being read, if it will not be read again.
 */
export function load(show, read, draw, { isRepeated = false, clear = () => {} } = {}) {
  let timer = 0;
  let isOver = false;
  const once = async () => {
    let again = isRepeated;
    try {
      const found = await read();
      if (isOver) return;
      show(null);
      draw(found);
    } catch (error) {
      if (isOver) return;
      again ||= passes(error);
      if (!again) clear();
      show(error, again ? AGAIN : "");
    }
    if (again) timer = setTimeout(once, AGAIN_MS);
  };
  once();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
