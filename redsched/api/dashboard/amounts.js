// Amounts as people type them.

const EXAMPLE = "VCPU=2 MEMORY_MB=4096";

/** Return the amounts of a text such as `VCPU=2 MEMORY_MB=4096`. Throws an Error that says what is wrong. */
export function parsedAmounts(text) {
  return Object.fromEntries(words(text).map((word) => {
    const [name, amount] = word.split("=");
    if (/^\d+$/.test(amount ?? "")) return [name, Number(amount)];
    throw new Error(`the resource '${word}' is not CLASS=AMOUNT: for example ${EXAMPLE}`);
  }));
}

/** Return the words of a text, which commas or spaces separate. */
export function words(text) {
  return text.split(/[\s,]+/).filter(Boolean);
}
