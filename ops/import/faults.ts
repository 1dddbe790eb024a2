/** One thing that is wrong with a file. */
export interface Fault {
  /** 1-based place in the file's list; null: the file as a whole. */
  readonly row: number | null;
  /** Name as in the file, a dot before each inner name; null: the row as a whole. */
  readonly field: string | null;
  readonly message: string;
  /** What stands there; absent when nothing does, or it is no single value. */
  readonly value?: string | number | boolean | null;
  /** Of a CSV file: its line, 1-based, the heading among them. */
  readonly line?: number;
}

/** A file that is refused: nothing of it was written. */
export class ImportRefused extends Error {
  override readonly name = 'ImportRefused';

  constructor(readonly faults: readonly Fault[]) {
    super(`${faults.length} ${faults.length === 1 ? 'fault' : 'faults'} found; nothing was written.`);
  }
}

/** Refuses a file as a whole. */
export function refuseFile(message: string): never {
  throw new ImportRefused([{ row: null, field: null, message }]);
}

/** In the order of the file. */
export function sortFaults(faults: readonly Fault[]): Fault[] {
  return faults.toSorted((a, b) => (a.row ?? 0) - (b.row ?? 0));
}
