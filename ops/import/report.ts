import type { Difference } from '../differences';

/** How an import is made. */
export interface ImportOptions {
  /** Who imports, for the change log. */
  readonly actor: string;
  /** `<noun>.<verb>` for the change log. */
  readonly action: string;
  /** True: report what would happen and write nothing. */
  readonly dryRun: boolean;
}

/** What an import did, or with a dry run would do. */
export interface ImportReport {
  readonly dryRun: boolean;
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  /** What was created and updated, in the order of the file. */
  readonly changes: readonly ReportedChange[];
}

export interface ReportedChange {
  /** 1-based place in the file's list; of a CSV file its line, the heading among them. */
  readonly row: number;
  readonly subject: string;
  /** `created`, or what changed. */
  readonly change: string;
  /** Old and new values; of what is new, none. */
  readonly fields: readonly Difference[];
  /** What somebody should look at before it is imported. */
  readonly warning: string | null;
}

/** @param planned how many rows the file has. */
export function reportOf(
  planned: number,
  changes: readonly ReportedChange[],
  { dryRun }: ImportOptions,
): ImportReport {
  const created = changes.filter(({ change }) => change === 'created').length;
  const [updated, unchanged] = [changes.length - created, planned - changes.length];
  return { dryRun, created, updated, unchanged, changes };
}
