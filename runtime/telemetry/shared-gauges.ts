import { Gauge, type Registry } from 'prom-client';
import { ROUND_TIMEOUT_MS } from '../../timing/loop';
import { withTimeout } from '../../timing/timeout';

/** The series of a gauge: one figure, or one for each value of its labels. */
type Shown =
  number | readonly (readonly [labels: Readonly<Record<string, string | number>>, figure: number])[];

/** Longest time that a scrape waits for figures, in milliseconds: Prometheus waits 10 s for the whole page. */
const SCRAPE_WAITS_MS = 3_000;

/**
 * Makes gauges of figures that are read when they are scraped. The gauges of one scrape share one read. Without the figures (Postgres
 * is away) they have no series, and the rest of the page is served: the alert FiguresMissing finds that.
 */
export function sharedGauges<Figures>(registry: Registry, read: () => Promise<Figures>) {
  let reading: Promise<Figures> | null = null;
  const figures = () => {
    // A read that hangs is shared by the scrapes that follow, so that a frozen Postgres does not collect them.
    reading ??= withTimeout(read(), ROUND_TIMEOUT_MS, 'figures').finally(() => {
      reading = null;
    });
    return withTimeout(reading, SCRAPE_WAITS_MS, 'figures').catch(() => null);
  };
  return function gauge(
    name: string,
    help: string,
    show: (figures: Figures) => Shown,
    ...labelNames: string[]
  ): void {
    // The registry keeps it.
    void new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const found = await figures();
        // What was shown before: labels that are gone, or figures that cannot be read now.
        this.reset();
        // Without labels a reset leaves the series, with 0.
        if (labelNames.length === 0) this.remove();
        if (found === null) return;
        const shown = show(found);
        if (typeof shown === 'number') this.set(shown);
        else for (const [labels, figure] of shown) this.set(labels, figure);
      },
    });
  };
}

/** A series for each name, under this label. */
export const by = (label: string, counts: Readonly<Record<string, number>>): Shown =>
  Object.entries(counts).map(([name, count]) => [{ [label]: name }, count]);
