import { Gauge, type Registry } from 'prom-client';

type Description<Label extends string> = readonly [name: string, help: string, ...labels: Label[]];

/** Makes gauges of figures that are read when they are scraped. The gauges of one scrape share one read. */
export function sharedGauges<Figures>(registry: Registry, read: () => Promise<Figures>) {
  let reading: Promise<Figures> | null = null;
  const figures = () =>
    (reading ??= read().finally(() => {
      reading = null;
    }));
  return function gauge<Label extends string>(
    [name, help, ...labelNames]: Description<Label>,
    show: (gauge: Gauge<Label>, figures: Figures) => void,
  ): void {
    // The registry keeps it.
    void new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        show(this, await figures());
      },
    });
  };
}
