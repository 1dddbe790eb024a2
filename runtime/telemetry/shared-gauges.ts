import { Gauge, type Registry } from 'prom-client';

/** The series of a gauge: one figure, or one for each value of its labels. */
type Shown =
  number | readonly (readonly [labels: Readonly<Record<string, string | number>>, figure: number])[];

/** Makes gauges of figures that are read when they are scraped. The gauges of one scrape share one read. */
export function sharedGauges<Figures>(registry: Registry, read: () => Promise<Figures>) {
  let reading: Promise<Figures> | null = null;
  const figures = () =>
    (reading ??= read().finally(() => {
      reading = null;
    }));
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
        const shown = show(await figures());
        if (typeof shown === 'number') this.set(shown);
        else for (const [labels, figure] of shown) this.set(labels, figure);
      },
    });
  };
}

/** A series for each name, under this label. */
export const by = (label: string, counts: Readonly<Record<string, number>>): Shown =>
  Object.entries(counts).map(([name, count]) => [{ [label]: name }, count]);
