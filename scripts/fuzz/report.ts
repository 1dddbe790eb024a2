/** What the API process says of itself on its internal listener. */
export interface Counts {
  /** Answers by status. */
  readonly statuses: ReadonlyMap<string, number>;
  /** How many of them took longer than a second. */
  readonly slow: number;
  readonly residentBytes: number;
}

/** Reads the metrics of an API process: what really arrived on a path, and how it was answered. */
export async function readCounts(internalPort: number, path: string): Promise<Counts> {
  const route = `route="${path.replaceAll(/[{}]/g, String.raw`\$&`)}"`;
  const text = await (await fetch(`http://127.0.0.1:${internalPort}/metrics`)).text();
  const all = (pattern: string) => [...text.matchAll(new RegExp(pattern, 'gm'))];
  const metric = 'pfqs_http_request_seconds';
  const statuses = new Map<string, number>();
  for (const [, status = '', count] of all(`^${metric}_count\\{${route},status="(\\d+)"\\} (\\d+)$`))
    statuses.set(status, Number(count));
  let quick = 0;
  for (const [, count] of all(`^${metric}_bucket\\{le="1",${route},status="\\d+"\\} (\\d+)$`))
    quick += Number(count);
  const resident = Number(all('^process_resident_memory_bytes (\\d+)$')[0]?.[1]);
  return { statuses, slow: sum(statuses) - quick, residentBytes: resident };
}

export function sum(statuses: ReadonlyMap<string, number>): number {
  return [...statuses.values()].reduce((total, count) => total + count, 0);
}

/** Prints how the requests were answered. */
export function printCounts(path: string, counts: Counts, before: Counts, seconds: number): void {
  const { statuses, slow } = counts;
  console.log(`\nfuzz: ${sum(statuses)} requests to ${path} in ${seconds.toFixed(0)} s; answers:`);
  for (const [status, count] of [...statuses].toSorted(([a], [b]) => a.localeCompare(b)))
    console.log(`  ${status}: ${count}`);
  const mebibytes = (bytes: number) => (bytes / 1024 ** 2).toFixed(0);
  console.log(`fuzz: ${slow} took longer than a second`);
  console.log(
    `fuzz: resident memory of the API ${mebibytes(before.residentBytes)} MiB before, ${mebibytes(counts.residentBytes)} MiB after`,
  );
}
