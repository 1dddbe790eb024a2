/** Mistakes that a name may have and still be taken for another. */
const MOST_MISTAKES = 3;

/** The known name that was meant, most likely; null when none is near. */
export function didYouMean(name: string, known: readonly string[]): string | null {
  const plain = (text: string) =>
    text
      .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter((word) => word !== '')
      .join('_');
  const near = known
    .map((one) => ({ one, mistakes: distance(plain(name), plain(one)) }))
    .filter(({ one, mistakes }) => mistakes <= Math.min(MOST_MISTAKES, one.length / 3))
    .toSorted((a, b) => a.mistakes - b.mistakes);
  return near[0]?.one ?? null;
}

/** Letters to add, leave out or change (Levenshtein). */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [place, letter] of [...one].entries()) {
    const next = [place + 1];
    for (let at = 1; at < row.length; at += 1) {
      const changed = (row[at - 1] ?? 0) + (other[at - 1] === letter ? 0 : 1);
      next.push(Math.min(changed, (row[at] ?? 0) + 1, (next[at - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
