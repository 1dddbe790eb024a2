/** One invariant of the fault matrix, held against everything that was seen. */
export interface Finding {
  readonly invariant: string;
  readonly seen: string;
  /** Empty when it holds. */
  readonly offenders: readonly string[];
}

/** A notification with what became of its attempts. */
export interface Row {
  readonly id: string;
  readonly eventId: string;
  /** Null for a test notification. */
  readonly applicationId: string | null;
  readonly sequence: number;
  readonly body: string;
  readonly state: string;
  readonly generation: number;
  readonly attempts: number;
  readonly unknown: number;
  readonly unfinished: number;
  /** When its first attempt was stored, by the database, in milliseconds: what is patient counts from it, arrived or not. */
  readonly firstTriedMs: number;
  /** Why, for each attempt that says of itself that nothing was answered. */
  readonly unanswered: readonly string[];
}

/** Rows by application; test notifications have none. */
export function byApplication(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    if (row.applicationId === null) continue;
    const own = groups.get(row.applicationId);
    if (own === undefined) groups.set(row.applicationId, [row]);
    else own.push(row);
  }
  return groups;
}
