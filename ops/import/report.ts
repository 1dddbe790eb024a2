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
  readonly changes: readonly { readonly row: number; readonly subject: string; readonly change: string }[];
}
